import BundleModel
import GateVocabulary

/// The words by which people take consent back, and those that tell them how, or that it is done.
extension PageChecker {
    func checkWayOut() {
        checkReplyWords()
        checkConfirmations()
        checkLinkWords()
    }

    /// Words that say "stop" in a language, one of which a reply of its readers begins with. A language that is not here has
    /// words of the bundle's choice.
    private static let stopWords: [String: [String]] = [
        "nb": ["stopp", "avslutt"], "bs": ["stani", "odjava"], "sq": ["ndal", "çregjistro"],
    ]

    /// Who is written to in a language answers in it.
    private func checkReplyWords() {
        guard let rule = bundle.channels.smsRevocation,
            bundle.types.values.contains(where: { $0.isEnabled && $0.body.sms != .never })
        else { return }
        let law =
            "47 CFR 64.1200(a)(10), any reasonable means; GDPR Art. 7(3)"
        for language in Set(bundle.messages.keys.map(Self.language(of:))).sorted() {
            let missing = (Self.stopWords[language] ?? []).filter { !rule.contains($0) }
            let message: String
            if rule.words(of: language).isEmpty {
                message = "has no word of `\(language)`, in which the bundle writes texts"
            } else if !missing.isEmpty {
                message =
                    "does not take \(missing.map { "`\($0)`" }.joined(separator: ", ")) for a withdrawal"
            } else {
                continue
            }
            flaw(
                "channels.yaml", ["sms", "revocation", "words"], message,
                law: "\(law); add a line `\(language)`")
        }
    }

    /// A carrier takes these for a new consent, whatever the sender makes of them (CTIA).
    private static let returnWords: Set<String> = ["start", "unstop", "yes", "subscribe", "resubscribe"]

    /// A confirmation says that it is over, and nothing else that anybody could want.
    private func checkConfirmations() {
        let confirmations = bundle.channels.smsRevocation?.confirmations ?? [:]
        for (locale, text) in confirmations.sorted(by: { $0.key < $1.key }) {
            func add(_ message: String) {
                flaw(
                    "channels.yaml", ["sms", "revocation", "confirmation", locale], message,
                    law:
                        "47 CFR 64.1200(a)(12): it confirms the request and includes no marketing or promotional information"
                )
            }
            if !saysThatItEnds(text, in: locale) {
                add("does not say that it is over, in a word by which it could have been ended")
            }
            let words = RevocationRule.letters(of: text)
            let sold =
                (SellingWords.of(locale)?.found(in: text) ?? [])
                + words.filter(Self.returnWords.contains)
            if !sold.isEmpty {
                add(
                    "says \(sold.map { "`\($0)`" }.joined(separator: ", ")), and a confirmation only confirms"
                )
            }
        }
    }

    /// The words in front of the link by which e-mails end.
    private func checkLinkWords() {
        for page in bundle.messages.values.sorted(by: { $0.locale < $1.locale }) {
            guard let text = page.unsubscribeWords, !saysThatItEnds(text, in: page.locale) else { continue }
            flaw(
                "messages/\(page.locale).yaml", ["unsubscribe"],
                "does not say that the link ends something, in a word by which a reply would",
                law:
                    "ePrivacy Directive 2002/58/EC Art. 13(4), 15 U.S.C. 7704(a)(5): the way out is told clearly"
            )
        }
    }

    fileprivate static func language(of locale: String) -> String {
        String(locale.prefix { $0 != "-" && $0 != "_" })
    }

    /// Whether a text has a word of its language by which a reply takes consent back, in any inflection; English words are
    /// understood in every one. True where nothing is known of the language, which ``checkReplyWords()`` tells.
    private func saysThatItEnds(_ text: String, in locale: String) -> Bool {
        let language = Self.language(of: locale)
        func own(_ name: String) -> [String] {
            (Self.stopWords[name] ?? []) + (bundle.channels.smsRevocation?.words(of: name) ?? [])
        }
        let phrases = (own(language) + own("en") + Self.revocationWords).map(RevocationRule.letters(of:))
        guard language == "en" || !own(language).isEmpty else { return true }
        let words = RevocationRule.letters(of: text)
        return phrases.contains { phrase in
            guard let first = words.indices.first, !phrase.isEmpty, phrase.count <= words.count else {
                return false
            }
            return (first...(words.count - phrase.count)).contains { start in
                zip(phrase, words[start...]).allSatisfy(Self.isForm)
            }
        }
    }

    /// Whether a word of a text is a form of a word of a list: it begins with its stem. A short word has no other form, and
    /// what is written without blanks has it anywhere.
    private static func isForm(of word: String, _ said: String) -> Bool {
        if word.unicodeScalars.contains(where: \.properties.isIdeographic) { return said.contains(word) }
        return word.count < 4 ? said == word : said.hasPrefix(word.prefix(5))
    }
}

extension RevocationRule {
    /// The words of a language, in whatever place it is spoken.
    fileprivate func words(of language: String) -> [String] {
        [words, aloneWords].flatMap { lists in
            lists.filter { PageChecker.language(of: $0.key) == language }.flatMap(\.value)
        }
    }
}
