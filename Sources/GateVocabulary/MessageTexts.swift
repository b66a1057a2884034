/// The texts of one type in one locale.
package struct MessageTexts: Hashable, Sendable {
    package var title: MessageText
    package var body: MessageText
    /// For a locked screen; the generic text of the tier stands in when absent.
    package var publicTitle: MessageText?
    package var publicBody: MessageText?

    package init(
        title: MessageText, body: MessageText, publicTitle: MessageText? = nil,
        publicBody: MessageText? = nil
    ) {
        self.title = title
        self.body = body
        self.publicTitle = publicTitle
        self.publicBody = publicBody
    }

    /// The params any of them names.
    package var params: [String] {
        [title, body, publicTitle, publicBody].compactMap { $0 }.flatMap(\.params)
    }
}

/// A text with places for params: `{recipient_name}`.
package struct MessageTemplate: Hashable, Sendable {
    /// A piece of the template: text as it stands, or the place of a param.
    package enum Part: Hashable, Sendable {
        case text(String)
        case param(String)
    }

    package var parts: [Part]

    /// The params it names.
    package var params: [String] {
        parts.compactMap { if case .param(let name) = $0 { name } else { nil } }
    }

    package var hasLineBreak: Bool {
        parts.contains { if case .text(let text) = $0 { text.contains(where: \.isNewline) } else { false } }
    }

    package init(_ parts: [Part]) { self.parts = parts }

    /// - Returns: `nil` for a brace without its partner or a place without a name.
    package init?(_ text: String) {
        parts = []
        var rest = text[...]
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            guard rest[open] == "{", let close = rest[open...].firstIndex(of: "}") else { return nil }
            let name = rest[rest.index(after: open)..<close]
            guard !name.isEmpty, !name.contains("{") else { return nil }
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            parts.append(.param(String(name)))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
    }
}

/// The plural categories of Unicode CLDR.
package enum PluralForm: String, CaseIterable, Sendable, Hashable {
    case zero, one, two, few, many, other
}

/// A text, or one text per plural form of an integer param.
package enum MessageText: Hashable, Sendable {
    case plain(MessageTemplate)
    /// `.other` is always present.
    case plural(param: String, forms: [PluralForm: MessageTemplate])
    /// The first whose params are all there; the last asks for none.
    case variants([MessageVariant])

    package var templates: [MessageTemplate] {
        switch self {
        case .plain(let template): [template]
        case .plural(_, let forms): Array(forms.values)
        case .variants(let variants): variants.flatMap(\.text.templates)
        }
    }

    package var params: [String] {
        switch self {
        case .plain(let template): template.params
        case .plural(let param, let forms): [param] + forms.values.flatMap(\.params)
        case .variants(let variants): variants.flatMap(\.text.params)
        }
    }

    /// The text that is said when some params are there, never of variants.
    ///
    /// - Parameter isGiven: Whether a param is there.
    /// - Returns: `nil` where no variant fits, which the check of a bundle rules out.
    package func chosen(_ isGiven: (String) -> Bool) -> MessageText? {
        guard case .variants(let variants) = self else { return self }
        return variants.first { $0.given.allSatisfy(isGiven) }?.text
    }
}

/// What a text says when some optional params are there.
package struct MessageVariant: Hashable, Sendable {
    /// Every one of them is there; none for what is said otherwise.
    package var given: [String]
    /// Never of variants.
    package var text: MessageText

    package init(given: [String], text: MessageText) {
        self.given = given
        self.text = text
    }
}
