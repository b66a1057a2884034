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

    private func chain(from locale: String?) -> [LocaleMessages] {
        var chain: [LocaleMessages] = []
        var next = locale.flatMap { file(of: $0) } ?? bundle.messages[LocaleMessages.lastLocale]
        while let messages = next {
            chain.append(messages)
            next = messages.fallback.flatMap { bundle.messages[$0] }
        }
        return chain
    }

    /// `nb-Latn-NO` → `nb-Latn` → `nb` (RFC 4647 section 3.4), without case.
    private func file(of locale: String) -> LocaleMessages? {
        var parts = locale.lowercased().split(separator: "-")
        while !parts.isEmpty {
            let wanted = parts.joined(separator: "-")
            if let found = bundle.messages.first(where: { $0.key.lowercased() == wanted }) {
                return found.value
            }
            parts.removeLast()
        }
        return nil
    }
}
