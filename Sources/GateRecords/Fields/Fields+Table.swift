/// The rows of the handbook's table of a record (page "Records"): name, class, forms and meaning of each field.
extension Fields {
    package static var tableHead: String { "| field | class | forms | meaning |" }

    package var table: [String] {
        all.map { field in
            let forms = [
                field.stored.map { _ in "row" },
                field.recorded.map { "\($0.name)" == "\(field.name)" ? "entry" : "entry as `\($0.name)`" },
                field.shown.map { _ in "answer" }, field.given.map { _ in "body" },
            ].compactMap(\.self)
            return
                "| `\(field.name)` | \(field.secrecy.rawValue) | \(forms.joined(separator: ", ")) | \(field.means) |"
        }
    }
}
