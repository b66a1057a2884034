import OpenSSLCrypto
package import GateVocabulary

/// A text that was shown when consent was asked for (`notices/<id>.<version>.<language>.txt`).
package struct Notice: Hashable, Sendable {
    /// What identifies one text of a notice; a change of the text is a new version.
    package struct Key: Hashable, Sendable {
        package var id: String
        package var version: String
        package var language: String

        package init(id: String, version: String, language: String) {
            self.id = id
            self.version = version
            self.language = language
        }
    }

    package var key: Key
    package var text: String
    /// SHA-256 of the file's bytes, 64 lower-case hexadecimal digits: what a consent record cites.
    package var sha256: String

    init(key: Key, text: String) {
        self.key = key
        self.text = text
        sha256 = Hexadecimal.encode(SHA256.digest(Array(text.utf8)).bytes)
    }
}

extension Notice {
    /// What a notice asks about, whatever its version and language.
    package struct Scope: Hashable, Sendable {
        package var purposes: [Purpose]
        /// A text about messages to a number asks nothing about e-mail.
        package var channels: [Channel]
        /// The ways in which a yes to it is given. A text that is signed cannot be agreed to by a tap, and one that says
        /// nothing of it is neither signed nor told at a sale (``GateVocabulary/ConsentMethod/hasNoticeOfItsOwn``).
        package var methods: [ConsentMethod]
        /// What a send may rest on because of a yes to it, in the words of the law.
        package var basis: String
        /// Days after which a yes to it ends at the latest; `nil` for one that lasts until it is taken back.
        package var endsAfterDays: Int?
        /// The day on which each version was first shown, in whatever place it was that day first. A version that is not here
        /// may have been shown at any time.
        private let firstShown: [String: CalendarDate]

        package init(
            purposes: [Purpose], channels: [Channel], methods: [ConsentMethod], basis: String,
            endsAfterDays: Int? = nil, firstShown: [String: CalendarDate] = [:]
        ) {
            self.purposes = purposes
            self.channels = channels
            self.methods = methods
            self.basis = basis
            self.endsAfterDays = endsAfterDays
            self.firstShown = firstShown
        }

        /// The first day of a version, where nobody can have agreed to it at a moment; `nil` where somebody can.
        package func firstDay(of version: String, after moment: Instant) -> CalendarDate? {
            // The page's day begins at UTC+14, the first zone that it begins in.
            firstShown[version].flatMap { moment < $0.instant.advanced(bySeconds: -14 * 3600) ? $0 : nil }
        }
    }

    /// The page that says what each notice asks for, by the notice's id: `{promo: {asks_for: [marketing],
    /// basis: GDPR Art. 6(1)(a)}}`. It stands apart from the texts, because a text is archived exactly as it was seen.
    package static let purposesPage = "notices.yaml"

    /// Of a notice that names no `methods`.
    package static let ordinaryMethods = ConsentMethod.allCases.filter { !$0.hasNoticeOfItsOwn }

    static func scopes(_ reader: NodeReader) -> [String: Scope] {
        let members = reader.members()
        var scopes: [String: Scope] = [:]
        let rows = members.required("notices", "What each notice asks for, by its id.")
        for (id, node) in rows?.members().others() ?? [] {
            let row = node.members()
            let scope = Scope(
                purposes: row.texts("asks_for", countMin: 1, "Purposes that a yes to it is for.").map {
                    Purpose($0)
                },
                channels: row.optional("channels", "On which channels; without it, on all.")?
                    .elements(countMin: 1).map { $0.name() } ?? Channel.allCases,
                methods: row.optional(
                    "methods",
                    "How a yes to it is given; without it, in every way that needs no text of its own.")?
                    .elements(countMin: 1).map { $0.name() } ?? Self.ordinaryMethods,
                basis: row.text(
                    "basis", "What a send may rest on because of a yes to it, in the words of the law."),
                endsAfterDays: row.optional(
                    "ends_after_days",
                    "Days after which a yes to it ends; without it, it lasts until it is taken back.")?
                    .integer(1...3650),
                firstShown: row.optional(
                    "first_shown",
                    "By version, the day on which its text was first shown; a yes to it of an earlier day is refused."
                )
                .map { days in
                    let days = days.members().others().map { ($0.key, $0.value.date()) }
                    return Dictionary(days, uniquingKeysWith: { first, _ in first })
                } ?? [:])
            if scope.purposes.isEmpty { node.problem("asks for nothing") }
            if scope.channels.isEmpty { node.problem("asks for no channel") }
            if scope.methods.isEmpty { node.problem("can be agreed to in no way") }
            scopes[id] = scope
            row.ignoreRationale()
            row.refuseOthers()
        }
        members.ignoreRationale()
        members.refuseOthers()
        return scopes
    }
}

extension Notice.Key {
    /// Inside the bundle's folder.
    package var path: String { "notices/\(id).\(version).\(language).txt" }

    /// - Parameter path: `notices/promo.3.nb.txt`; `nil` for a name of any other form.
    package init?(path: String) {
        guard path.hasPrefix("notices/"), path.hasSuffix(".txt") else { return nil }
        let parts = path.dropFirst("notices/".count).dropLast(".txt".count)
            .split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count >= 3, parts.allSatisfy({ !$0.isEmpty && !$0.contains("/") }) else { return nil }
        self.init(
            id: parts.dropLast(2).joined(separator: "."), version: String(parts[parts.count - 2]),
            language: String(parts[parts.count - 1]))
    }
}
