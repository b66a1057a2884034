@testable import AuditTrail
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import SQLiteStore
import SendPlanning
import Testing

@testable import GateSteps
@testable import GatewayPipeline
@testable import GateRecords

/// Whoever holds the trail's key can take an entry out, write it twice or move it, and sign all of it again.
@Suite struct TornActTests {
    /// What is done to one entry.
    private enum Edit: String, CaseIterable { case removed, doubled, swapped }

    /// Edits of an entry, by its kind and state, that leave a trail which a gate may have written. Each stands on the page "Verifying".
    private static let untold: [Edit: Set<String>] = [
        // What nothing later depends on; and a consent to what an app may also have reported as a choice.
        .removed: [
            "address", "consent given", "delivery", "device", "erasure", "permission_prompt", "send",
            "switch_off",
        ],
        // A person may say the same twice.
        .doubled: ["preference user_on", "switch_off"],
        // Neither of the two tells of the other.
        .swapped: [
            "address, address", "address, recipient", "consent given, preference user_on",
            "consent withdrawn, switch_off",
            "delivery, delivery", "delivery, send", "device, address", "preference user_off, switch_off",
            "send, address",
            "switch_off, send",
        ],
    ]

    /// Acts of every kind that writes several entries, and of the kinds that write one.
    private func honest() async throws -> (gate: GatewayHarness, entries: [[UInt8]]) {
        let gate = try GatewayHarness()
        let person = "/v1/recipients/u_1"
        func ask(_ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil) async throws
        {
            gate.clock.advance(seconds: 1)
            let reply = try await gate.call(caller, method, target, body)
            try #require(reply.status < 300 || reply.status == 403, "\(target): \(reply.json)")
        }
        func address(_ id: String, _ kind: String, _ value: String, of user: String) async throws {
            try await ask(
                "product", "PUT", "/v1/recipients/\(user)/addresses/\(id)",
                [
                    "kind": .string(kind), "value": .string(value),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
        }
        for user in ["u_1", "u_2"] {
            try await gate.register(user)
            try await address("a_1", "sms", user == "u_1" ? "+4790000000" : "+4790000001", of: user)
        }
        try await address("a_2", "email", "ada@example.org", of: "u_1")
        try await ask(
            "product", "POST", "\(person)/permission-prompts", ["device": "d_1", "answer": "granted"])
        try await gate.consent("u_1")
        try await ask("marketing", "POST", "/v1/sends", gate.promo("p_1", to: "u_1"))
        try await ask("payments", "POST", "/v1/sends", GatewayHarness.remittance("r_1", to: "u_1"))
        for delivery in try await gate.claim() {
            try await gate.gateway.report(
                delivery.message, .accepted(status: 202, byProvider: false), retryAt: nil)
        }
        // Another one waits, and is taken out by what the person says.
        try await ask("marketing", "POST", "/v1/sends", gate.promo("p_2", to: "u_1"))
        try await ask("product", "POST", "\(person)/consents/c1/withdraw")
        try await ask("marketing", "POST", "/v1/sends", gate.promo("p_3", to: "u_1"))
        gate.clock.advance(seconds: 1)
        try await gate.consent("u_1", id: "c2")
        try await ask(
            "product", "PUT", "\(person)/preferences/marketing",
            ["source": "in_app_settings", "state": "user_off"])
        gate.clock.advance(seconds: 1)
        try await gate.consent("u_1", id: "c3")
        try await ask(
            "replies", "POST", "/v1/replies",
            [
                "id": "m_1", "channel": "sms", "from": "+4790000000", "text": "STOP",
                "received_at": .string(gate.clock.now().rfc3339),
            ])
        try await ask("payments", "POST", "/v1/sends", GatewayHarness.remittance("r_2", to: "u_1"))
        try await ask("product", "DELETE", "/v1/recipients/u_2/addresses/a_1")
        try await ask("product", "DELETE", "/v1/recipients/u_2")
        return (gate, try gate.store.read { try $0.entries(from: 0, limit: 10_000) }.map(\.bytes))
    }

    /// The entries after an edit, numbered again, at the times of their places, with the ledgers' digests made anew.
    private func signedAgain(_ entries: [[UInt8]], _ edit: Edit, at place: Int, _ policy: CompiledPolicy)
        throws -> [[UInt8]]
    {
        var entries = try entries.map { try TrailEntry(reading: $0) }
        switch edit {
        case .removed: entries.remove(at: place)
        case .doubled: entries.insert(entries[place], at: place)
        case .swapped:
            (entries[place].time, entries[place + 1].time) = (entries[place + 1].time, entries[place].time)
            entries.swapAt(place, place + 1)
        }
        var fold = EvidenceFold(under: policy)
        return try entries.enumerated().map { index, entry in
            var entry = entry
            entry.index = UInt64(index)
            if entry.kind == .consent, let text = entry.members["subject"]?.stringValue,
                let subject = SubjectID(hexadecimal: text)
            {
                entry.members["previous"] = .string(fold.ledgers[subject]?.last.map(\.chainHash) ?? "")
            }
            let bytes = try entry.encoded().bytes
            try fold.apply(bytes) { _ in policy }
            return bytes
        }
    }

    /// Whether a replay from the first entry names anything.
    private func isNamed(_ entries: [[UInt8]], _ policy: CompiledPolicy) throws -> Bool {
        var fold = EvidenceFold(under: policy)
        var issued = IssuedIDs()
        for entry in entries {
            if try issued.follow(TrailEntry(reading: entry)) != nil { return true }
            if try !fold.differences(in: entry, policies: { _ in policy }).isEmpty { return true }
            if try fold.objection(to: entry, policies: { _ in policy }) != nil { return true }
            try fold.apply(entry) { _ in policy }
        }
        return false
    }

    @Test
    func
        `every entry that is removed, doubled or swapped is named, but for the kinds that nothing depends on`()
        async throws
    {
        let (gate, entries) = try await honest()
        let policy = gate.policy
        #expect(try !isNamed(entries, policy))
        let kinds = try entries.map { bytes in
            let entry = try TrailEntry(reading: bytes)
            return [entry.kind.text, entry.members["state"]?.stringValue].compactMap(\.self).joined(
                separator: " ")
        }
        for edit in Edit.allCases {
            var untold: Set<String> = []
            for place in entries.indices {
                if edit == .swapped, place + 1 == entries.count || entries[place] == entries[place + 1] {
                    continue
                }
                // An entry that cannot be applied ends the replay, which names it.
                let edited: [[UInt8]]
                do {
                    edited = try signedAgain(entries, edit, at: place, policy)
                } catch { continue }
                if try !isNamed(edited, policy) {
                    untold.insert(edit == .swapped ? "\(kinds[place]), \(kinds[place + 1])" : kinds[place])
                }
            }
            #expect(untold == Self.untold[edit], "\(edit): \(untold.sorted())")
        }
    }

    /// One thing that a person says while messages to them wait on three channels.
    enum Act: String, CaseIterable {
        case withdrawal, withdrawalEverywhere, objection, reply, addressReplaced, addressRemoved, link
    }

    /// What the act ends of what waits is written between the act's own entries.
    @Test(arguments: Act.allCases)
    func `an act that ends messages which wait on several channels is whole to a replay`(
        _ act: Act
    ) async throws {
        let gate = try GatewayHarness(caps: "categories: {}")
        let person = "/v1/recipients/u_1"
        func ask(_ caller: String, _ method: String, _ target: String, _ body: JSONObject? = nil) async throws
        {
            gate.clock.advance(seconds: 1)
            let reply = try await gate.call(caller, method, target, body)
            try #require(reply.status < 300, "\(target): \(reply.json)")
        }
        func address(_ id: String, _ kind: String, _ value: String) async throws {
            try await ask(
                "product", "PUT", "\(person)/addresses/\(id)",
                [
                    "kind": .string(kind), "value": .string(value),
                    "verified_at": .string(gate.clock.now().rfc3339),
                ])
        }
        try await gate.register("u_1")
        try await address("sms", "sms", "+4790000000")
        try await address("email", "email", "ada@example.org")
        try await gate.consent("u_1", id: "c-push")
        for channel in ["sms", "email"] {
            var consent = try gate.consentBody("c-\(channel)")
            consent["channel"] = .string(channel)
            consent["address"] = .string(channel)
            try await ask("product", "POST", "\(person)/consents", consent)
        }
        for channel in ["push", "sms", "email"] {
            var offer = try await gate.promo("p-\(channel)", to: "u_1")
            offer["channel"] = .string(channel)
            try await ask("marketing", "POST", "/v1/sends", offer)
        }
        let subject = try #require(try gate.store.read { try $0.subject(of: UserID("u_1")) }).id
        let waiting = try gate.store.read { try $0.outbox(of: subject) }
        try #require(waiting.count == 3)
        let before = try gate.store.read { try $0.entryCount() }
        switch act {
        case .withdrawal: try await ask("product", "POST", "\(person)/consents/c-email/withdraw")
        case .withdrawalEverywhere:
            try await ask(
                "product", "POST", "\(person)/consents/c-email/withdraw", ["every_channel": true])
        case .objection:
            try await ask(
                "product", "PUT", "\(person)/preferences/marketing",
                ["source": "in_app_settings", "state": "user_off"])
        case .reply:
            try await ask(
                "replies", "POST", "/v1/replies",
                [
                    "id": "m_1", "channel": "sms", "from": "+4790000000", "text": "STOP",
                    "received_at": .string(gate.clock.now().rfc3339),
                ])
        case .addressReplaced: try await address("email", "email", "ada@example.net")
        case .addressRemoved: try await ask("product", "DELETE", "\(person)/addresses/email")
        case .link:
            try await ask(
                "product", "PUT", "\(person)/preferences/marketing",
                [
                    "source": "unsubscribe_link", "state": "user_off", "channel": "email",
                    "address": "email",
                ])
        }
        // Given that something which waited was ended with it, what the person says next is read as an act of its own.
        let ended = try gate.store.read { try $0.entries(from: before, limit: 100) }
        #expect(
            try ended.contains { [.redecision, .unsent].contains(try TrailEntry(reading: $0.bytes).kind) })
        try await gate.consent("u_1", id: "c-again")
        let entries = try gate.store.read { try $0.entries(from: 0, limit: 1_000) }.map(\.bytes)
        #expect(try EvidenceFoldTests.objections(to: entries, under: gate.policy) == [:])
        #expect(try !isNamed(entries, gate.policy))
    }
}
