package import BundleModel
import CanonicalJSON
package import GateVocabulary
package import PolicyStatutes

/// A statute a bundle breaks, with the smallest example that was found.
package struct Refutation: Sendable {
    package var statute: Statute
    package var request: AttestedRequest
    /// No fact can be forgotten and none made usual without the statute being kept.
    package var facts: Facts
    /// The facts that are not in favour, by name.
    package var unusual: [String]
    /// What the bundle makes of it.
    package var decision: Decision
    var declared: SendAsDeclared
    var place: StatuteBook.Place
    /// Whether it is an unknown fact that brings the send under the statute.
    var isForWantOfFact: Bool
    /// The page behind it, and the line of the table where one line is.
    var file: String
    var location: SourceLocation?

    var factCount: Int { unusual.count * 100 + facts.json.count }

    /// One sentence, lower-case, without a full stop.
    package var summary: String {
        "breaks the statute that \(statute.says): `\(request.type)` by `\(request.caller)` on \(request.channel.rawValue) comes out as `\(decision.outcome.name)`, `\(decision.reason.rawValue)`"
    }

    /// As the loader reports it.
    package var diagnostic: PolicyDiagnostic {
        PolicyDiagnostic(
            file: file, at: location, summary,
            hint: "see \(statute.law); `sendgate policy prove` writes it as a case")
    }

    /// What must come out instead.
    var expected: (outcome: Outcome, reason: Reason, more: [(String, String)]) {
        func because(_ reason: Reason) -> (Outcome, Reason, [(String, String)]) {
            (reason.outcome, reason, [])
        }
        switch statute.demands {
        case .reason where isForWantOfFact: return because(.factMissing)
        case .reason(.userPreference) where facts.pushEnabled == false && request.channel == .push:
            return because(.pushDisabled)
        case .reason(let reason): return because(reason)
        case .hoursRule:
            return because(declared.isPromotion ? .quietHoursDropped : .quietHoursDeferred)
        case .overflowRule: return because(declared.overflow == .digest ? .digested : .frequencyCap)
        case .permission:
            if facts.consent == nil { return because(.factMissing) }
            if declared.isMarketing {
                return because(place.regime == .other ? .noMarketingOptIn : .noGDPRConsent)
            }
            switch request.channel {
            case .push: return because(.noGDPRConsent)
            case .sms: return because(.noSMSConsent)
            case .email: return because(.noEmailConsent)
            }
        case .goes: return because(.allowed)
        case .form(let form):
            return (decision.outcome, decision.reason, [("form", form.rawValue)])
        case .timeSensitive:
            return (
                decision.outcome, decision.reason, [("interruption", Interruption.timeSensitive.rawValue)]
            )
        }
    }

    /// An element of `cases` in a file of `cases/`, indented as there: pasted, it fails `sendgate policy test` until
    /// the bundle is mended.
    package var example: String {
        var lines = [
            "  - name: \(Self.text("\(statute.says) (\(request.type) by \(request.caller) on \(request.channel.rawValue), \(statute.name))"))",
            "    because: \(Self.text("\(statute.law)."))",
            "    given:",
            "      caller: \(Self.text(request.caller.text))",
            "      type: \(Self.text(request.type.text))",
        ]
        if request.channel != .push { lines.append("      channel: \(request.channel.rawValue)") }
        if request.critical { lines.append("      critical: true") }
        // A case has a `now`; one whose point is that it is unknown takes it away again.
        let now = facts.now ?? facts.due ?? facts.expiry ?? Instant(seconds: 1_794_312_000)
        lines.append("      now: \(Self.text(now.rfc3339))")
        let json = facts.json
        let matter = unusual.filter { json[$0] != nil && $0 != "now" }
        let others = json.map(\.key).filter { $0 != "now" && !unusual.contains($0) }.sorted()
        if !matter.isEmpty || !others.isEmpty { lines.append("      facts:") }
        for name in matter { lines.append("        \(name): \(Self.value(json[name]!, name))") }
        if !others.isEmpty {
            if !matter.isEmpty { lines.append("        # The rest is in favour, and has to be known.") }
            for name in others { lines.append("        \(name): \(Self.value(json[name]!, name))") }
        }
        // What a case leaves unsaid of these is filled in, so an unknown fact has to be said.
        let unknown = PolicyCase.filledIn.filter { json[$0] == nil }
        if !unknown.isEmpty { lines.append("      without: [\(unknown.joined(separator: ", "))]") }
        let expected = expected
        lines += [
            "    then:", "      outcome: \(expected.outcome.name)",
            "      reason: \(expected.reason.rawValue)",
        ]
        for (key, value) in expected.more { lines.append("      \(key): \(value)") }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func value(_ value: JSONValue, _ key: String) -> String {
        switch value {
        case .integer(let number) where PolicyCase.isMoment(key):
            text(Instant(milliseconds: number).rfc3339)
        case .object(let object):
            "{" + object.map { "\($0.key): \(Self.value($0.value, $0.key))" }.joined(separator: ", ") + "}"
        case .array(let elements):
            "[" + elements.map { Self.value($0, key) }.joined(separator: ", ") + "]"
        case .string(let string): isWord(string) ? string : text(string)
        case .integer(let number): String(number)
        case .boolean(let boolean): boolean ? "true" : "false"
        case .null: "null"
        }
    }

    /// Whether no reader takes it for anything but a text.
    private static func isWord(_ text: String) -> Bool {
        let reserved: Set<String> = ["on", "off", "yes", "no", "true", "false", "null", "y", "n"]
        return text.utf8.count > 2 && !reserved.contains(text)
            && text.utf8.allSatisfy { $0.isLowercaseLetter || $0 == UInt8(ascii: "_") }
    }

    /// Between double quotes, which hold any text a name of a bundle can be.
    private static func text(_ text: String) -> String {
        String(decoding: CanonicalJSON.write(.string(text)), as: UTF8.self)
    }
}

extension StatuteBook {
    /// The line that lets a statute be broken, where one line of one table does; the type's page otherwise.
    func page(
        behind statute: Statute, _ send: BundleProof.Send, _ facts: Facts, _ place: Place
    ) -> (file: String, path: [String]) {
        let declared = send.declared
        let category = declared.category.rawValue
        guard declared.isRegistered else { return ("categories.yaml", []) }
        switch statute.demands {
        case .permission: return permissionPage(declared, facts, place)
        case .reason(.noGDPRConsent) where statute.when == .europeanOptInMissing:
            return permissionPage(declared, facts, place)
        case .hoursRule: return ("categories.yaml", [category, "quiet_hours"])
        case .overflowRule: return ("categories.yaml", [category, "overflow"])
        case .reason(.minor): return ("categories.yaml", [category, "minors"])
        default: return (Self.page(of: send.request.type), [])
        }
    }

    /// The strictest row that counts in one of the places, or the cell of the category's table.
    private func permissionPage(
        _ declared: SendAsDeclared, _ facts: Facts, _ place: Place
    ) -> (file: String, path: [String]) {
        let places = [facts.accountRegion?.code] + (facts.deviceRegions ?? []).map(\.code)
        let counting = places.compactMap(\.self).flatMap { code in
            guard let line = line(for: code, of: declared, at: facts.now) else { return [Int]() }
            return bundle.regions.permissionRows.indices.filter { index in
                let row = bundle.regions.permissionRows[index]
                return (row.region == code || row.region == code.country) && row.channel == declared.channel
                    && row.categories.contains(declared.category) && row.rule == line.rule
                    && row.from?.instant == line.from
            }
        }
        if let strictest = counting.max(by: {
            bundle.regions.permissionRows[$0].rule < bundle.regions.permissionRows[$1].rule
        }) {
            return ("regions.yaml", ["permission_rows", String(strictest), "rule"])
        }
        let path = [declared.category.rawValue, "permission", declared.channel.rawValue]
        return ("categories.yaml", path + [place.regime.rawValue])
    }
}
