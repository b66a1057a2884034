package import BundleModel
package import GateVocabulary

/// Finding a text: in the file of a locale, then in the file's fallback until `en`.
extension CompiledPolicy {
    /// - Parameter locale: As the bundle's file is named.
    /// - Returns: `nil` for a locale without a file of its own.
    package func texts(in locale: String) -> LocaleTexts? { messages[locale] }

    /// What is said of decisions in a language: that of the locale, or of its language, else English.
    ///
    /// - Parameter locale: A BCP 47 tag, compared without case.
    package func sentences(in locale: String?) -> Sentences {
        var parts = locale?.lowercased().split(separator: "-") ?? []
        while let language = parts.first {
            let tag = parts.joined(separator: "-")
            if tag == LocaleMessages.lastLocale { return .english }
            if let found = sentences[tag] { return found }
            // Who reads Norwegian of any kind reads Bokmål.
            if parts.count == 1, language == "no" || language == "nn" { return sentences["nb"] ?? .english }
            parts.removeLast()
        }
        return .english
    }

    /// By locale, as its file is named.
    static func localeTexts(of bundle: PolicyBundle) -> [String: LocaleTexts] {
        var locales: [String: LocaleTexts] = [:]
        for first in bundle.messages.values {
            var chain: [LocaleMessages] = []
            var next: LocaleMessages? = first
            // No chain is longer than there are files; one that leads back is a problem of the bundle.
            while let messages = next, chain.count < bundle.messages.count {
                chain.append(messages)
                next = messages.fallback.flatMap { bundle.messages[$0] }
            }
            locales[first.locale] = LocaleTexts(chain)
        }
        return locales
    }
}

/// Everything that is said to the readers of one locale: what its file does not have comes from those to look in after it.
package final class LocaleTexts: Sendable {
    /// The texts of a type, and the locale of the file they are from.
    package final class Found: Sendable {
        package let texts: MessageTexts
        package let locale: String

        fileprivate init(_ texts: MessageTexts, in locale: String) {
            self.texts = texts
            self.locale = locale
        }
    }

    private let found: [String: Found]
    private let generic:
        (critical: GenericText, important: GenericText, informational: GenericText, promotional: GenericText)

    /// - Parameter chain: The file of the locale, then those to look in after it.
    fileprivate init(_ chain: [LocaleMessages]) {
        var found: [String: Found] = [:]
        for messages in chain {
            for (key, texts) in messages.texts where found[key] == nil {
                found[key] = Found(texts, in: messages.locale)
            }
        }
        self.found = found
        func generic(_ tier: Tier) -> GenericText {
            // Every file has one per tier.
            guard let text = chain.lazy.compactMap({ $0.generic[tier] }).first else {
                preconditionFailure("a checked bundle has no generic text for \(tier.rawValue)")
            }
            return text
        }
        self.generic = (
            generic(.critical), generic(.important), generic(.informational), generic(.promotional)
        )
    }

    /// - Parameter key: ``NotificationType/messageKey``.
    /// - Returns: `nil` when no file has the key, which the checks rule out for every type that needs a text.
    package subscript(key: String) -> Found? { found[key] }

    /// The one text of a tier that tells nothing; the same for every recipient of the locale.
    package func generic(_ tier: Tier) -> GenericText {
        switch tier {
        case .critical: generic.critical
        case .important: generic.important
        case .informational: generic.informational
        case .promotional: generic.promotional
        }
    }
}
