import GateVocabulary

/// One file of `reasons/`: what is said of decisions in a language other than English.
extension Sentences {
    static let folder = "reasons/"
    private static let monthByteCountMax = 32
    private static let sentenceByteCountMax = 1024

    static func page(of locale: String) -> String { "\(folder)\(locale).yaml" }

    /// What is missing is for ``BundleChecker/checkSentences()``: a page of an earlier build has the sentences of its day.
    init(locale: String, _ reader: NodeReader) {
        var months: [String] = []
        var templates: [Sentence: SentenceTemplate] = [:]
        let page = reader.members()
        if let list = page.optional(
            "months", isDemanded: true,
            "From January to December, in the form that follows the day of a date.")
        {
            months = list.elements(countMin: Self.monthCount, countMax: Self.monthCount).map {
                $0.text(byteCountMax: Self.monthByteCountMax)
            }
        }
        Self.read(page, Sentence.all.map { ($0.path[...], $0) }, into: &templates)
        self.init(locale: locale, months: months, templates: templates)
    }

    /// - Parameter wanted: Sentences that stand below a mapping, each with the rest of its path.
    private static func read(
        _ members: MemberReader, _ wanted: [(path: ArraySlice<String>, sentence: Sentence)],
        into templates: inout [Sentence: SentenceTemplate]
    ) {
        let groups = Dictionary(grouping: wanted) { $0.path.first ?? "" }
        for (key, group) in groups.sorted(by: { $0.key < $1.key }) {
            let means = means(group[0].sentence, group[0].path.startIndex + 1)
            guard let child = members.optional(key, isDemanded: true, means) else { continue }
            if let sentence = group.first(where: { $0.path.count == 1 })?.sentence {
                templates[sentence] = template(child)
            } else {
                read(child.members(), group.map { ($0.path.dropFirst(), $0.sentence) }, into: &templates)
            }
        }
        members.refuseOthers()
    }

    /// Of so many steps of a sentence's path: the sentence, or a mapping that has it.
    private static func means(_ sentence: Sentence, _ stepCount: Int) -> String {
        if stepCount == sentence.path.count { return "In English: \(sentence.english)" }
        switch sentence {
        case .reason(let reason, _), .withdrawal(let reason):
            return switch stepCount {
            case 1:
                "By reason: the sentence, the sentence of each detail, and what completes \"it was taken back: …\"."
            case 2: "\(reason.declaration.title)."
            default: "The sentence of each detail."
            }
        case .cause: return "What completes \"it was taken back: …\", where no decision's reason does."
        case .whoCanFix: return "Who can make the next attempt succeed."
        case .note: return "What else a decision did."
        case .event: return "What became of a message."
        case .act: return "What the recipient was seen to do."
        case .remedy:
            return "What a person can do so that a choice has its effect; without a full stop."
        case .phrase: preconditionFailure("a phrase stands in no mapping")
        }
    }

    private static func template(_ reader: NodeReader) -> SentenceTemplate? {
        let reader = reader.named(
            "sentence",
            "With the values of the English sentence, e.g. {moment}. What stands in brackets is said where its values are known."
        )
        let text = reader.text(byteCountMax: sentenceByteCountMax)
        if let violation = MessageTexts.rule.violation(in: text) {
            reader.problem(violation.replacing("expected", with: "must have"))
        }
        do throws(SentenceTemplate.Fault) {
            return try SentenceTemplate(text)
        } catch {
            let values = SentenceTemplate.Value.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
            reader.problem(
                error.message,
                hint: "values are \(values); what stands in brackets is said where its values are known")
            return nil
        }
    }
}

extension BundleChecker {
    // MARK: reasons/

    /// Each language in which recipients are written to has every sentence, so that a refusal can be read out in it.
    func checkSentences() {
        for locale in bundle.messages.keys.sorted() where !Self.hasSentences(for: locale, in: bundle) {
            list.add(
                PolicyDiagnostic(
                    file: Sentences.page(of: locale), message: "the file is missing",
                    hint:
                        "messages/\(locale).yaml makes it a language of the bundle; the sentences that explain decisions are needed in it too"
                ))
        }
        for (locale, sentences) in bundle.sentences {
            let file = Sentences.page(of: locale)
            if locale == Sentences.english.locale {
                problem(
                    file, [], "is in English, which the gateway has by itself",
                    hint: "remove it, or name it after the language it is in")
                continue
            }
            check(sentences, file)
        }
    }

    private static func hasSentences(for locale: String, in bundle: PolicyBundle) -> Bool {
        let language = locale.split(separator: "-").first.map(String.init) ?? locale
        return language == Sentences.english.locale || bundle.sentences[locale] != nil
            || bundle.sentences[language] != nil
    }

    private func check(_ sentences: Sentences, _ file: String) {
        if sentences.months.count != Sentences.monthCount {
            problem(
                file, ["months"],
                "must be the twelve months of a date, and there are \(sentences.months.count)",
                hint: "from January to December, in the form that follows the day")
        }
        var told: Set<[String]> = []
        for sentence in Sentence.all {
            guard let template = sentences.templates[sentence] else {
                // What is there and unreadable was told when it was read.
                if let gap = gap(sentence.path, in: file), told.insert(gap).inserted {
                    problem(
                        file, gap.dropLast(), "lacks `\(gap.last ?? "")`",
                        hint: gap == sentence.path ? "in English: \(sentence.english)" : nil)
                }
                continue
            }
            guard let english = Sentences.english.templates[sentence],
                template.required != english.required || template.optional != english.optional
            else { continue }
            problem(
                file, sentence.path, "must have the values of the English sentence",
                hint: "which is: \(sentence.english)")
        }
    }

    /// The shortest beginning of a path that a page does not have; `nil` where it has all of it.
    private func gap(_ path: [String], in file: String) -> [String]? {
        var node = bundle.documents[file]
        for (index, step) in path.enumerated() {
            node = node?[step]
            if node == nil { return Array(path[...index]) }
        }
        return nil
    }
}
