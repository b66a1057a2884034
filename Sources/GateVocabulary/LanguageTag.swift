import CanonicalJSON

/// A BCP 47 language tag, in the case RFC 5646 section 2.1.1 recommends: `nb-NO`, `sr-Latn`.
///
/// Only its shape is checked. A tag without conventions is still a tag: numbers then follow the
/// root conventions of Unicode CLDR, and texts come from the bundle's first language.
package struct LanguageTag: Hashable, Sendable, CustomStringConvertible {
    package let description: String
    /// The first subtag, in lower case: two or three letters (ISO 639). BCP 47 keeps room for longer ones
    /// and has registered none.
    package let language: String
    /// ISO 15924, e.g. `Latn`.
    package let script: String?
    /// ISO 3166-1 alpha-2 in upper case, or three digits (UN M.49).
    package let region: String?

    /// 35 bytes is what RFC 5646 section 4.4.1 tells implementations to have room for.
    package static let byteCountMax = 35

    /// The one language each bundle must have (`messages/en.yaml`): a text that no other file has comes from it.
    package static let last = LanguageTag("en")!

    /// - Parameter text: Subtags of 1 to 8 ASCII letters and digits joined by `-`, the first of two or three letters.
    package init?(_ text: String) {
        guard (2...Self.byteCountMax).contains(text.utf8.count) else { return nil }
        // Nearly every tag is two or three lower-case letters, and this is asked once for every send.
        if text.utf8.count <= 3, CodeUnits.withBytes(text, { $0.allSatisfy { $0.isLowercaseLetter } }) {
            description = text
            language = text
            script = nil
            region = nil
            return
        }
        var canonical: [String] = []
        var script: String?
        var region: String?
        for (index, subtag) in text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
            .enumerated()
        {
            let letterCount = subtag.count { $0.isLetter }
            guard (1...8).contains(subtag.count), subtag.allSatisfy({ $0.isAlphanumeric }) else { return nil }
            let plain = String(decoding: subtag, as: UTF8.self)
            if index == 0 {
                guard (2...3).contains(subtag.count), letterCount == subtag.count else { return nil }
                canonical.append(plain.lowercased())
            } else if subtag.count == 4, letterCount == 4, canonical.count == 1 {
                script = plain.prefix(1).uppercased() + plain.dropFirst().lowercased()
                canonical.append(script!)
            } else if region == nil, canonical.count <= 2,
                subtag.count == 2 && letterCount == 2
                    || subtag.count == 3 && letterCount == 0
            {
                region = plain.uppercased()
                canonical.append(plain.uppercased())
            } else {
                canonical.append(plain.lowercased())
            }
        }
        description = canonical.joined(separator: "-")
        language = canonical[0]
        self.script = script
        self.region = region
    }

    /// Language, script and region: everything in a tag that comes from a closed list.
    package var core: String { [language, script, region].compactMap(\.self).joined(separator: "-") }

    /// This tag, then shorter and shorter ones (the lookup of RFC 4647 section 3.4), then what speakers of
    /// the language also read: the Norwegian macrolanguage and Nynorsk lead to Bokmål.
    package var lookupChain: [LanguageTag] {
        var chain = [self]
        if description.utf8.count == language.utf8.count {
            if language == "no" || language == "nn" { chain.append(LanguageTag("nb")!) }
            return chain
        }
        var subtags = description.split(separator: "-")
        while subtags.count > 1 {
            subtags.removeLast()
            // A single letter only introduces what follows it, so it goes together with that.
            while subtags.count > 1, subtags[subtags.count - 1].utf8.count == 1 { subtags.removeLast() }
            if let shorter = LanguageTag(subtags.joined(separator: "-")) { chain.append(shorter) }
        }
        if language == "no" || language == "nn" { chain.append(LanguageTag("nb")!) }
        return chain
    }
}
