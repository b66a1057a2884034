package import BundleModel
package import GateVocabulary

/// Finding a text: in the file of a locale, then in the file's fallback until `en`.
extension CompiledPolicy {
    /// - Parameter locale: As the bundle's file is named.
    /// - Returns: `nil` for a locale without a file of its own.
    package func texts(in locale: String) -> LocaleTexts? {
        localeNames.position(of: locale).map { locales[$0] }
    }

    /// What is said of decisions to a reader of a language. English where none is named: it is the gateway's own.
    ///
    /// - Parameter locale: A BCP 47 tag, compared without case.
    package func sentences(in locale: String?) -> Sentences {
        guard let locale else { return .english }
        for tag in languages.candidates(for: [locale]) {
            if tag == .last { return .english }
            if let found = sentences[tag.description.lowercased()] { return found }
        }
        return .english
    }

    /// Of every locale that has a file.
    ///
    /// - Parameter types: In the order of their positions.
    static func localeTexts(of bundle: PolicyBundle, for types: [NotificationType]) -> [LocaleTexts] {
        bundle.messages.values.map { first in
            var chain: [LocaleMessages] = []
            var next: LocaleMessages? = first
            // No chain is longer than there are files; one that leads back is a problem of the bundle.
            while let messages = next, chain.count < bundle.messages.count {
                chain.append(messages)
                next = messages.fallback.flatMap { bundle.messages[$0] }
            }
            return LocaleTexts(chain, for: types)
        }
    }
}

/// Everything that is said to the readers of one locale: what its file does not have comes from those to look in after it.
package final class LocaleTexts: Sendable {
    /// The texts of a type, and the locale of the file they are from.
    package final class Found: Sendable {
        // One property each: of all together, filling one would copy the others.
        package let title: MessageText
        package let body: MessageText
        package let publicTitle: MessageText?
        package let publicBody: MessageText?
        package let locale: String

        fileprivate init(_ texts: MessageTexts, in locale: String) {
            title = texts.title
            body = texts.body
            publicTitle = texts.publicTitle
            publicBody = texts.publicBody
            self.locale = locale
        }
    }

    /// The locale of the file.
    let locale: String
    /// Whether it is a language without subtags, and so its own canonical tag: two or three small letters.
    package let isLanguage: Bool
    /// By the position of the type.
    private let found: [Found?]
    // One property each: of a tuple, a look-up would copy all texts to give one.
    private let critical: GenericText
    private let important: GenericText
    private let informational: GenericText
    private let promotional: GenericText
    /// ``LocaleMessages/unsubscribeWords``. `nil` in a bundle that sends no such e-mail.
    package let unsubscribeWords: String?

    /// - Parameters:
    ///   - chain: The file of the locale, then those to look in after it.
    ///   - types: In the order of their positions.
    fileprivate init(_ chain: [LocaleMessages], for types: [NotificationType]) {
        let locale = chain[0].locale
        self.locale = locale
        isLanguage =
            (2...3).contains(locale.utf8.count)
            && locale.utf8.allSatisfy { $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") }
        var found: [String: Found] = [:]
        for messages in chain {
            for (key, texts) in messages.texts where found[key] == nil {
                found[key] = Found(texts, in: messages.locale)
            }
        }
        self.found = types.map { found[$0.messageKey] }
        func generic(_ tier: Tier) -> GenericText {
            // Every file has one per tier.
            guard let text = chain.lazy.compactMap({ $0.generic[tier] }).first else {
                preconditionFailure("a checked bundle has no generic text for \(tier.rawValue)")
            }
            return text
        }
        critical = generic(.critical)
        important = generic(.important)
        informational = generic(.informational)
        promotional = generic(.promotional)
        unsubscribeWords = chain.lazy.compactMap(\.unsubscribeWords).first
    }

    /// The texts of a request's type.
    ///
    /// - Returns: `nil` when no file has them, which the checks rule out for every type that needs a text, and for a type that
    ///   is not in the registry.
    package func texts(under terms: borrowing RequestTerms) -> Found? {
        guard let position = terms.typePosition else { return nil }
        return found[position]
    }

    /// The one text of a tier that tells nothing; the same for every recipient of the locale.
    package func generic(_ tier: Tier) -> GenericText {
        switch tier {
        case .critical: critical
        case .important: important
        case .informational: informational
        case .promotional: promotional
        }
    }
}
