/// The languages in which a bundle writes to its readers: the first of them, and which of them readers of another language
/// read as well.
///
/// Every place where a reader's language becomes one of the bundle asks ``candidates(for:)``: texts, the sentences that explain
/// decisions, the unsubscribe pages, and the confirmation of a withdrawal.
package struct ReaderLanguages: Hashable, Sendable {
    /// The language for a reader whose own the bundle does not have, and for one who named none.
    package let first: LanguageTag
    /// Readers of the key read the value as well: Croatian leads to Bosnian, Danish to Norwegian.
    package let alsoRead: [String: LanguageTag]

    /// Languages that readers may name: as many as ISO 639-1 has, and as many again.
    package static let alsoReadCountMax = 400

    /// English alone, which is what a bundle says without words of its own.
    package static let english = ReaderLanguages(first: .last)

    /// - Parameter alsoRead: By tags in the case of RFC 5646.
    package init(first: LanguageTag, alsoRead: [String: LanguageTag] = [:]) {
        self.first = first
        self.alsoRead = alsoRead
    }

    /// The tags to try in turn for a reader who asked for `wishes`, each tag once. Of each wish, best first: the tag, the
    /// shorter ones (RFC 4647 section 3.4), and what its readers read as well. After all wishes the bundle's first language,
    /// and English, in which every bundle has its texts.
    ///
    /// - Parameter wishes: As they came; `nil` and what is no tag are passed over.
    package func candidates(for wishes: [String?]) -> [LanguageTag] {
        var candidates = readable(of: wishes)
        add(first, to: &candidates)
        add(.last, to: &candidates)
        return candidates
    }

    /// The same without the languages that every reader falls back to: what readers of `wishes` are known to read.
    package func readable(of wishes: [String?]) -> [LanguageTag] {
        var candidates: [LanguageTag] = []
        for wish in wishes {
            guard let wish, let tag = LanguageTag(wish) else { continue }
            add(tag, to: &candidates)
        }
        return candidates
    }

    private func add(_ tag: LanguageTag, to candidates: inout [LanguageTag]) {
        let own = tag.lookupChain
        for step in own where !candidates.contains(step) { candidates.append(step) }
        // No tag is followed twice, so that a table which leads in a circle ends as well.
        var followed: Set<String> = []
        var open = own
        while !open.isEmpty {
            let step = open.removeFirst()
            guard followed.insert(step.description).inserted, let other = alsoRead[step.description] else {
                continue
            }
            for step in other.lookupChain {
                if !candidates.contains(step) { candidates.append(step) }
                open.append(step)
            }
        }
    }
}
