import GateVocabulary

/// What no single line can get wrong: rules that contradict one another, the law, or the source documents.
extension PolicyBundle {
    /// Every problem that remains once each file reads well by itself.
    package func check() -> [PolicyDiagnostic] {
        let checker = BundleChecker(self)
        checker.checkCategories()
        checker.checkRegions()
        checker.checkCallers()
        checker.checkCritical()
        checker.checkChannels()
        checker.checkLimits()
        for type in types.values { checker.check(type) }
        checker.checkAcrossTypes()
        checker.checkLanguages()
        checker.checkMessages()
        checker.checkEmailFooter()
        checker.checkSentences()
        for type in types.values { checker.checkParamUse(of: type) }
        checker.checkNotices()
        checker.checkCases()
        return checker.list.diagnostics
    }
}

/// One pass over a bundle that was read: what each part may not say, in a file for each part.
struct BundleChecker {
    package let bundle: PolicyBundle
    let list = DiagnosticList()
    /// What no recipient may miss, by id: marketing may neither sound like it nor share its channel.
    let alarms: [NotificationType]

    init(_ bundle: PolicyBundle) {
        self.bundle = bundle
        alarms = bundle.types.values.filter { $0.category != .marketing && $0.tier == .critical }
            .sorted { $0.id < $1.id }
    }

    func problem(_ file: String, _ path: [String], _ message: String, hint: String? = nil) {
        let name = PolicyDiagnostic.name(of: path)
        list.add(
            PolicyDiagnostic(file: file, at: bundle.location(file, path), "\(name) \(message)", hint: hint))
    }

    /// The type that a page names, or a problem of the page.
    func type(_ id: TypeID, namedBy file: String, _ path: [String]) -> NotificationType? {
        let type = bundle.types[id]
        if type == nil { problem(file, path, "is `\(id)`, which is not in the registry") }
        return type
    }
}

extension PolicyBundle {
    /// What is no problem and still worth a look: texts that a locale borrows from another, types without a limit,
    /// texts that sell where nothing is sold, and grants over everybody in more hands than one.
    package var remarks: [PolicyDiagnostic] {
        borrowedTexts + unlimitedTypes + sellingRemarks + sharedGrants
    }

    /// Who reads the whole record, or puts rules in force, is one caller; a second may be one that was given too much.
    private var sharedGrants: [PolicyDiagnostic] {
        [Grant.trailRead, .policyActivate].compactMap { grant in
            let holders = callers.filter { $0.key != developmentCaller && $0.value.grants.contains(grant) }
                .keys.sorted()
            guard holders.count > 1 else { return nil }
            return PolicyDiagnostic(
                file: "callers.yaml",
                message: "gives `\(grant.rawValue)` to \(holders.map(\.text).quoted)",
                hint: "give it to one caller, or have the page signed as `security` with each `because` read")
        }
    }

    /// S0 limits what is important and gathers what informs, so a type of either without a limit may be one forgotten.
    private var unlimitedTypes: [PolicyDiagnostic] {
        let forgotten = types.values.filter { type in
            [.important, .informational].contains(type.tier) && type.isEnabled && type.mandatory == nil
                && overflow(of: type) != .allow && typeCap(of: type) == nil && categoryCap(of: type) == nil
                && !summaries.contains(type.id)
        }
        guard !forgotten.isEmpty else { return [] }
        let shown = forgotten.map(\.id).sorted().prefix(8).quoted
        let rest = forgotten.count > 8 ? " and \(forgotten.count - 8) more" : ""
        return [
            PolicyDiagnostic(
                file: "limits.yaml", message: "has no limit for \(shown)\(rest)",
                hint: "add `tiers`, a line for each, or `overflow: allow` to its page with the reason")
        ]
    }

    private var borrowedTexts: [PolicyDiagnostic] {
        let spoken = types.values.filter { type in
            type.saysItsTexts
        }
        let keys = Set(spoken.map(\.messageKey)).sorted()
        return messages.values.sorted { $0.locale < $1.locale }.flatMap { own in
            let missing = Dictionary(grouping: keys.filter { own.texts[$0] == nil }) {
                reader(of: $0, from: own)
            }
            return missing.sorted { $0.key < $1.key }.map { locale, missing in
                let shown = missing.prefix(8).quoted
                let rest = missing.count > 8 ? " and \(missing.count - 8) more" : ""
                return PolicyDiagnostic(
                    file: "messages/\(own.locale).yaml",
                    message:
                        "lacks texts for \(missing.count) of \(keys.count) types, whose readers get `\(locale)`: \(shown)\(rest)",
                    hint: "translate them, or keep the fallback")
            }
        }
    }

    /// The first locale of a chain that has a text.
    private func reader(of key: String, from own: LocaleMessages) -> String {
        var locale = own
        while locale.texts[key] == nil, let next = locale.fallback.flatMap({ messages[$0] }) { locale = next }
        return locale.locale
    }
}
