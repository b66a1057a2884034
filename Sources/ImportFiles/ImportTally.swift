package import CanonicalJSON

/// What an import has come to so far. Kept beside the refusals, so that an import that was stopped goes on with it.
package struct ImportTally: Hashable, Sendable {
    /// Records of the file that were read, refused ones among them.
    package var recordCount: Int64 = 0
    /// By what of a person.
    package private(set) var recorded: [String: Int64] = [:]
    package private(set) var unchanged: [String: Int64] = [:]
    /// By what of a person: registered otherwise, and left so.
    package private(set) var kept: [String: Int64] = [:]
    /// By what of a person, and why.
    package private(set) var refused: [String: [String: Int64]] = [:]
    /// Consents that lacked what proves one: the notice, the time, or how it was said.
    package private(set) var unprovenCount: Int64 = 0
    /// The first and the last entry that the import wrote.
    package private(set) var firstEntry: Int64?
    package private(set) var lastEntry: Int64?

    package init() {}

    package var refusedCount: Int64 { refused.values.reduce(0) { $0 + $1.values.reduce(0, +) } }

    package mutating func refuse(_ part: String, because reason: String) {
        refused[part, default: [:]][reason, default: 0] += 1
    }

    /// The members of a consent without which nobody can prove it (GDPR Art. 7(1)).
    private static let proof: Set<String> = ["notice", "event_time", "method"]

    /// Adds the answer to a line.
    ///
    /// - Returns: What was refused of it: where, why, and in words.
    package mutating func add(_ answer: JSONObject) -> [(pointer: String, reason: String, detail: String)] {
        guard answer["status"]?.integerValue == 200 else {
            let type = answer["type"]?.stringValue?.split(separator: ":").last.map(String.init) ?? "unknown"
            refuse("lines", because: type)
            let detail = answer["detail"]?.stringValue ?? answer["title"]?.stringValue ?? ""
            let violations = (answer["violations"]?.arrayValue ?? []).map {
                ($0["pointer"]?.stringValue ?? "", type, $0["message"]?.stringValue ?? "")
            }
            return violations.isEmpty ? [("", type, detail)] : violations
        }
        Self.add(answer["recorded"], to: &recorded)
        Self.add(answer["unchanged"], to: &unchanged)
        for pointer in answer["kept"]?.arrayValue ?? [] {
            kept[Self.part(of: pointer.stringValue ?? ""), default: 0] += 1
        }
        if let entry = answer["trail"]?["index"]?.integerValue {
            firstEntry = min(firstEntry ?? entry, entry)
            lastEntry = max(lastEntry ?? entry, entry)
        }
        var said: [(pointer: String, reason: String, detail: String)] = []
        // A part may lack several members; it is one that was refused.
        var parts: Set<String> = []
        var unproven: Set<String> = []
        for refusal in answer["refused"]?.arrayValue ?? [] {
            let pointer = refusal["pointer"]?.stringValue ?? ""
            let reason = refusal["reason"]?.stringValue ?? ""
            said.append((pointer, reason, refusal["detail"]?.stringValue ?? ""))
            let tokens = pointer.split(separator: "/").map(String.init)
            let part = tokens.prefix(2).joined(separator: "/")
            if parts.insert(part).inserted { refuse(Self.part(of: pointer), because: reason) }
            let lacksProof =
                tokens.count == 3 && Self.proof.contains(tokens[2])
                || tokens.count > 3 && tokens[2] == "notice"
                || reason == "unknown_notice"
            if tokens.first == "consents", lacksProof { unproven.insert(part) }
        }
        unprovenCount += Int64(unproven.count)
        return said
    }

    private static func part(of pointer: String) -> String {
        let first = pointer.split(separator: "/").first.map(String.init) ?? "lines"
        return first == "recipient" ? "recipients" : first
    }

    private static func add(_ counts: JSONValue?, to sums: inout [String: Int64]) {
        for (name, count) in counts?.objectValue?.members ?? [] {
            guard let count = count.integerValue, count > 0 else { continue }
            sums[name, default: 0] += count
        }
    }
}

// MARK: As JSON

extension ImportTally {
    package var json: JSONObject {
        func object(_ counts: [String: Int64]) -> JSONValue {
            .object(JSONObject(counts.map { ($0.key, .integer($0.value)) }))
        }
        var json: JSONObject = [
            "records": .integer(recordCount), "recorded": object(recorded), "unchanged": object(unchanged),
            "kept": object(kept), "unproven_consents": .integer(unprovenCount),
            "refused": .object(JSONObject(refused.map { ($0.key, object($0.value)) })),
        ]
        if let firstEntry, let lastEntry { json["entries"] = [.integer(firstEntry), .integer(lastEntry)] }
        return json
    }

    /// - Returns: `nil` of an object that is no tally.
    package init?(_ json: JSONObject) {
        func counts(_ value: JSONValue?) -> [String: Int64]? {
            guard let object = value?.objectValue else { return nil }
            return Dictionary(
                object.members.map { ($0.key, $0.value.integerValue ?? 0) }, uniquingKeysWith: { $1 })
        }
        guard let records = json["records"]?.integerValue, let recorded = counts(json["recorded"]),
            let unchanged = counts(json["unchanged"]), let kept = counts(json["kept"]),
            let unproven = json["unproven_consents"]?.integerValue, let refused = json["refused"]?.objectValue
        else { return nil }
        (recordCount, self.recorded, self.unchanged, self.kept) = (records, recorded, unchanged, kept)
        unprovenCount = unproven
        for (part, reasons) in refused.members { self.refused[part] = counts(reasons) ?? [:] }
        firstEntry = json["entries"]?.arrayValue?.first?.integerValue
        lastEntry = json["entries"]?.arrayValue?.last?.integerValue
    }
}

// MARK: In words

extension ImportTally {
    /// What was done, in sentences that an officer can sign.
    ///
    /// - Parameters:
    ///   - file: Its name and the SHA-256 of its bytes.
    ///   - isDryRun: Whether everything was only tried.
    package func words(
        file: String, digest: String, map: String, isDryRun: Bool, refusals: String
    ) -> [String] {
        func recorded(_ name: String) -> Int64 { self.recorded[name] ?? 0 }
        let done = isDryRun ? "would be" : "were"
        var words = [
            isDryRun ? "Trial of an import; nothing was recorded." : "Import into the consent ledger.",
            "File: \(file), SHA-256 \(digest), read as \(map).",
            "\(recordCount) records were read.",
            "\(recorded("recipients")) people, \(recorded("devices")) devices and \(recorded("addresses")) numbers and mailboxes \(done) registered.",
            "\(recorded("consents")) consents \(done) recorded, each with the text that was shown, the time and the way in which it was given.",
            "\(recorded("withdrawals")) withdrawals and \(recorded("preferences")) choices, opt-outs among them, \(done) recorded with their own times.",
        ]
        let unchanged = self.unchanged.values.reduce(0, +)
        if unchanged > 0 { words.append("\(unchanged) were so before, and \(done) not recorded again.") }
        let kept = self.kept.values.reduce(0, +)
        if kept > 0 {
            words.append(
                "\(kept) people, devices and addresses are registered otherwise here, and \(isDryRun ? "would stay" : "stayed") so."
            )
        }
        if unprovenCount > 0 {
            words.append(
                "\(unprovenCount) opt-ins came without the text that was shown, with one that the bundle does not have, without a time or without a way of saying it. They prove no consent (GDPR Art. 7(1)) and \(done) refused: ask these people again."
            )
        }
        if refusedCount > 0 {
            words.append(
                "\(refusedCount) parts \(done) refused in all; `\(refusals)` has each with its line:")
            for (part, reasons) in refused.sorted(by: { $0.key < $1.key }) {
                for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) {
                    words.append("  \(part): \(count) \(reason)")
                }
            }
        } else {
            words.append("Nothing \(isDryRun ? "would be" : "was") refused.")
        }
        if isDryRun {
            words.append(
                "Each line was tried alone: a person on lines that do not follow each other was counted once for each, and nothing of an earlier line was known."
            )
        }
        if let firstEntry, let lastEntry {
            words.append("Evidence: entries \(firstEntry) to \(lastEntry) of the trail.")
        }
        return words
    }
}
