package import BundleModel
package import GateVocabulary

/// Finding a text: the locale asked for, its language, then the file's fallback until `en`.
extension CompiledPolicy {
    /// The texts of a type for a locale, with the locale they are in.
    ///
    /// - Parameters:
    ///   - key: ``NotificationType/messageKey``.
    ///   - locale: A BCP 47 tag, e.g. `nb-NO`; compared without case. `nil` starts at `en`.
    /// - Returns: `nil` when no locale of the chain has the key, which the checks rule out for every type
    ///   that needs a text.
    package func texts(_ key: String, locale: String?) -> (texts: MessageTexts, locale: String)? {
        for messages in chain(from: locale) {
            if let texts = messages.texts[key] { return (texts, messages.locale) }
        }
        return nil
    }

    /// The one text of a tier that tells nothing; the same for every recipient of the locale.
    package func genericText(_ tier: Tier, locale: String?) -> GenericText {
        // Every file has one per tier, and `en` always exists, so the chain cannot come up empty.
        for messages in chain(from: locale) {
            if let text = messages.generic[tier] { return text }
        }
        preconditionFailure("a checked bundle has no generic text for \(tier.rawValue)")
    }

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

    private func chain(from locale: String?) -> [LocaleMessages] {
        guard let locale else { return messages[LocaleMessages.lastLocale] ?? [] }
        if let chain = messages[locale] { return chain }
        var parts = locale.lowercased().split(separator: "-")
        while !parts.isEmpty {
            if let chain = messages[parts.joined(separator: "-")] { return chain }
            parts.removeLast()
        }
        return messages[LocaleMessages.lastLocale] ?? []
    }

    static func messageChains(of bundle: PolicyBundle) -> [String: [LocaleMessages]] {
        var chains: [String: [LocaleMessages]] = [:]
        for first in bundle.messages.values {
            var chain: [LocaleMessages] = []
            var next: LocaleMessages? = first
            // No chain is longer than there are files; one that leads back is a problem of the bundle.
            while let messages = next, chain.count < bundle.messages.count {
                chain.append(messages)
                next = messages.fallback.flatMap { bundle.messages[$0] }
            }
            chains[first.locale.lowercased()] = chain
        }
        return chains
    }
}
