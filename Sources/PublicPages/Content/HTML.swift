/// One element or text of a page. What is written is always escaped; there is no way to write markup as text.
package enum HTML: Hashable, Sendable {
    case text(String)
    indirect case node(String, [Attribute], [HTML])

    package struct Attribute: Hashable, Sendable {
        package var name: String
        package var value: String
    }

    package static func element(
        _ name: String, _ attributes: KeyValuePairs<String, String>, _ children: HTML...
    )
        -> HTML
    {
        .node(name, attributes.map { Attribute(name: $0.key, value: $0.value) }, children)
    }

    package static func element(_ name: String, _ children: HTML...) -> HTML { .node(name, [], children) }

    /// Elements that have neither content nor an end tag (HTML Living Standard, 13.1.2).
    private static let void: Set<String> = ["meta", "link", "input"]

    func write(to text: inout String) {
        switch self {
        case .text(let content): Self.escape(content, to: &text)
        case .node(let name, let attributes, let children):
            text += "<\(name)"
            for attribute in attributes {
                text += " \(attribute.name)=\""
                Self.escape(attribute.value, to: &text)
                text += "\""
            }
            text += ">"
            if Self.void.contains(name) { return }
            for child in children { child.write(to: &text) }
            text += "</\(name)>"
        }
    }

    /// A whole document around its root element.
    package static func document(_ root: HTML) -> [UInt8] {
        var text = "<!DOCTYPE html>\n"
        root.write(to: &text)
        text += "\n"
        return Array(text.utf8)
    }

    private static func escape(_ content: String, to text: inout String) {
        for scalar in content.unicodeScalars {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "'": text += "&#39;"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}
