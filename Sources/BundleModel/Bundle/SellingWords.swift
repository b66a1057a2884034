import CanonicalJSON
import GateVocabulary

/// Words by which a text sells something, by language: offer, rate, loan, product, discount and their like.
///
/// What sells in a security or transactional notification is marketing in disguise (ePrivacy Directive 2002/58/EC
/// Art. 13, recital 40; S1). No list of words decides that, so a text with one of them is no problem of the bundle: it is
/// a remark, and a part that `legal` signs.
package struct SellingWords: Sendable {
    /// Every form of every word, in lower case and without marks.
    private let forms: Set<String>
    /// Words whose compounds end with them, as in Norwegian: `forbrukslån` sells as `lån` does.
    private let heads: [String]

    /// - Parameter words: A stem and its endings, `loan s`; `-` is a form without an ending. A stem alone is a word that
    ///   does not change.
    private init(_ words: [String], compounds: Bool = false) {
        var forms: Set<String> = []
        for word in words {
            let parts = word.split(separator: " ").map(String.init)
            for ending in parts.count == 1 ? ["-"] : Array(parts.dropFirst()) {
                forms.insert(parts[0] + (ending == "-" ? "" : ending))
            }
        }
        self.forms = forms
        heads = compounds ? forms.filter { $0.utf8.count >= 5 }.sorted() : []
    }

    /// The words of a text that sell, as they stand there but in lower case and without marks, each once.
    ///
    /// - Parameter text: A text or a part of one; no word goes over its end.
    package func found(in text: String) -> [String] {
        RevocationRule.letters(of: text).reduce(into: []) { found, word in
            let sells =
                forms.contains(word) || heads.contains { word.count > $0.count + 1 && word.hasSuffix($0) }
            if sells, !found.contains(word) { found.append(word) }
        }
    }

    /// - Returns: `nil` for a language without a table; what is written in one is for a person to read.
    package static func of(_ locale: String) -> SellingWords? {
        let language = String(locale.prefix { $0 != "-" && $0 != "_" }).lowercased()
        return tables[kin[language] ?? language]
    }

    /// Languages that are read with the table of another: close enough for words like these.
    private static let kin = [
        "no": "nb", "nn": "nb", "da": "nb", "sv": "nb", "hr": "bs", "sr": "bs", "cnr": "bs", "sh": "bs",
    ]

    private static let tables: [String: SellingWords] = [
        "en": SellingWords([
            "offer - s ed ing ings", "rate - s", "loan - s", "mortgage - s", "product - s", "discount - s ed",
            "deal - s", "bargain - s", "promo - s", "promotion - s al", "cashback", "bonus - es",
            "coupon - s", "voucher - s", "reward - s", "prize - s", "giveaway - s", "gift - s",
            "sale", "premium", "upgrade - s", "insurance", "invest - ing ment ments", "refinance - d",
            "cheap - er est", "exclusive - ly", "buy", "subscribe", "referral - s", "lottery", "winner - s",
            "invite - s d", "inviting", "invitation - s", "earn - s ed ing ings", "refer - s red ring",
            "rewarding",
            "rewarded",
        ]),
        "nb": SellingWords(
            [
                "tilbud - et ene ets", "rente - n r ne ns", "lan - et ene ets", "boliglan - et",
                "forbrukslan - et", "lanetilbud - et", "produkt - et er ene ets", "rabatt - en er ene",
                "kampanje - n r ne", "bonus - en er ene", "kupong - en er ene", "premie - n r ne",
                "gevinst - en er ene", "gave - n r ne", "gratis", "salg - et", "forsikring - en er ene",
                "investering - en er ene", "invester - e t", "kredittkort - et ene", "billig - e ere st",
                "eksklusiv - t e", "oppgrader - ing ingen", "fordelskunde - r", "verv - e er et ing",
                "inviter - e er t", "invitasjon - en er", "tjen - e er te", "belonn - e er et ing ingen",
                "refinansier - e ing",
                "erbjudande - t n", "rabat - ten ter",
            ], compounds: true),
        "bs": SellingWords([
            "ponud - a e i u om ama", "popust - a u om i e ima", "kredit - a u om i e ima", "zajam -",
            "zajm - a u om ovi ove ova ovima", "kamat - a e i u om ama na ne ni nu noj nom",
            "proizvod - a u om i e ima", "akcij - a e i u om ama", "promocij - a e i u om ama",
            "bonus - a u om i e ima",
            "besplatn - o a e i u om im ih", "nagrad - a e i u om ama", "kupon - a u om i e ima",
            "osiguranj - e a u em", "poklon - a u om i e ima", "jeftin - o a e i u iji ije ija",
            "investir - ajte ati anje", "investicij - a e i u om ama", "kupite", "kupi", "pretplatite",
            "rasprodaj - a e i u om", "hipotek - a e u om", "nadogradi - te", "ekskluzivn - o a e i u",
            "pozovi - te", "pozivnic - a e u", "preporuci - te", "zaradi - te", "zaradujete", "osvoji - te",
        ]),
        "sq": SellingWords([
            "ofert - e a en at es ave", "zbritje - n t ve s a", "ulje - n t ve s a", "kredi - a ne se te ve",
            "hua - ja n ne se te ve", "interes - i in it a at", "produkt - i in it e et eve",
            "promocion - i in it e et eve", "bonus - i in it e et eve", "falas", "dhurat - e a en at es ave",
            "kupon - i in it e et eve", "shperblim - i in it e et eve", "cmim - e et eve",
            "investim - i in it e et eve",
            "investo - ni", "bli - ni", "abonohuni", "ekskluziv - e isht", "hipotek - e a en",
            "lotari - a ne",
            "fto - ni", "ftese - n", "ftes - a e", "fito - ni n jne", "rekomando - ni",
        ]),
    ]
}

extension PolicyBundle {
    /// A text of a security or transactional notification that sells, or that no table of words can be held against.
    struct SellingText: Sendable {
        /// `messages/en.yaml`.
        var file: String
        var key: String
        /// Its words that sell; empty where its language has no table.
        var words: [String]
        var value: JSONValue
    }

    /// In the order of files and keys.
    var sellingTexts: [SellingText] {
        let kinds = types.values.filter { $0.category == .security || $0.category == .transactional }
        let keys = Set(kinds.map(\.messageKey)).union(["generic"])
        return messages.keys.sorted().flatMap { locale -> [SellingText] in
            let file = "messages/\(locale).yaml"
            let page = documents[file]?.json.objectValue ?? JSONObject()
            let words = SellingWords.of(locale)
            return keys.sorted().compactMap { key in
                guard let value = page[key] else { return nil }
                guard let words else { return SellingText(file: file, key: key, words: [], value: value) }
                let found = Self.texts(of: value, but: key == "generic" ? ["promotional"] : [])
                    .flatMap { words.found(in: $0) }
                return found.isEmpty
                    ? nil
                    : SellingText(file: file, key: key, words: Array(Set(found)).sorted(), value: value)
            }
        }
    }

    /// Every text below a member of a page of messages, without its params.
    private static func texts(of value: JSONValue, but left: Set<String>) -> [String] {
        switch value {
        case .string(let text):
            // A param ends a word, and its name is none.
            text.split(separator: "{", omittingEmptySubsequences: false).enumerated().map { index, part in
                index == 0 ? String(part) : String(part.drop { $0 != "}" })
            }
        case .array(let elements):
            elements.flatMap { element in
                // What a variant asks for are names of params.
                texts(of: element, but: ["given"])
            }
        case .object(let members):
            members.filter { !left.contains($0.key) }.flatMap { texts(of: $0.value, but: left) }
        default: []
        }
    }

    var sellingRemarks: [PolicyDiagnostic] {
        let unread = Dictionary(grouping: sellingTexts.filter(\.words.isEmpty), by: \.file)
        return sellingTexts.filter { !$0.words.isEmpty }.map { text in
            PolicyDiagnostic(
                file: text.file, at: location(text.file, [text.key]),
                "\(PolicyDiagnostic.name(of: [text.key])) says \(text.words.quoted), and no security or transactional text sells",
                hint: "say it without, or have `\(text.file)#\(text.key)` signed as `legal`")
        }
            + unread.sorted { $0.key < $1.key }.map { file, texts in
                PolicyDiagnostic(
                    file: file,
                    message:
                        "is in a language of which this build knows no words that sell, so \(texts.count) texts were not looked through",
                    hint:
                        "have the page read by somebody who speaks it; its security and transactional texts are signed as `legal`"
                )
            }
    }
}
