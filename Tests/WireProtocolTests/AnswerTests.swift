import CanonicalJSON
import GateRecords
import GateVocabulary
import Testing

@testable import GatewayPipeline
@testable import WireProtocol

@Suite struct AnswerTests {
    private func delivery(
        _ destination: String?, _ reason: Reason, _ gate: Gate? = nil, _ detail: Detail? = nil
    ) -> SendAnswer.Delivery {
        SendAnswer.Delivery(
            destination: destination, outcome: reason.outcome, reason: reason, detail: detail, gate: gate)
    }

    private func answer(
        _ deliveries: [SendAnswer.Delivery], hidesRecipient: Bool = false, isReplayed: Bool = false
    ) -> SendAnswer {
        SendAnswer(
            id: RequestID("1"), sendID: Samples.sendID,
            policy: PolicyDigest(String(repeating: "0", count: 64)),
            deliveries: deliveries, hidesRecipient: hidesRecipient,
            trail: TrailReference(origin: "test/trail", index: 7, leaf: Array(repeating: 0, count: 32)),
            isReplayed: isReplayed)
    }

    @Test(arguments: ["&", "no such type", "\u{436}"])
    func `an explanation may repeat whatever type its request named`(type: String) {
        let request = AttestedRequest(
            caller: CallerName("payments"), type: TypeID(type), channel: .push, critical: false)
        #expect(AttestedRequest.shape.violations(of: .object(request.json)).isEmpty)
    }

    @Test func `the best delivery speaks for the send`() {
        let all = [
            delivery("d5", .noGDPRConsent, .permission), delivery("d4", .blockedAtOSLevel, .osPermission),
            delivery("d3", .digested, .caps), delivery("d2", .quietHoursDeferred, .quietHours),
            delivery("d1", .allowed),
        ]
        for count in 1...all.count {
            let best = all[count - 1]
            #expect(answer(Array(all[..<count])).reason == best.reason)
            #expect(answer(Array(all[..<count].reversed())).reason == best.reason)
        }
    }

    @Test func `among equals the lower gate speaks, then the destination's name`() {
        #expect(
            answer([
                delivery("a", .frequencyCap, .caps),
                delivery("b", .userPreference, .preferences, .accountOff),
            ]).reason == .userPreference)
        #expect(
            answer([delivery("a", .genericOnly, .deviceKey), delivery("b", .allowed)]).reason == .allowed)
        let one = delivery("a", .noDestination, .destination, .destinationInactive)
        let two = delivery("b", .noDestination, .destination, .addressUnverified)
        #expect(answer([two, one]).detail == .destinationInactive)
        // é as one scalar and as two are two names; the bytes decide which stands first.
        #expect(delivery("e\u{301}", .allowed).precedes(delivery("\u{E9}", .allowed)))
        #expect(!delivery("\u{E9}", .allowed).precedes(delivery("e\u{301}", .allowed)))
    }

    @Test(arguments: Reason.allCases)
    func `a status never lets a client believe in a send that was not`(_ reason: Reason) throws {
        let gate: Gate? = reason == .allowed ? nil : .permission
        let answer = answer([delivery("d", reason, gate, reason.details.first)])
        let isPromise = reason.outcome.isPromise
        #expect(answer.status == (isPromise ? 202 : 403))
        let json = answer.json()
        #expect((json["type"] != nil) == !isPromise)
        #expect(json["status"] == (isPromise ? nil : 403))
        #expect(answer.json(isStreamLine: true)["status"] == (isPromise ? 202 : 403))
        #expect(answer.answer().contentType == (isPromise ? "application/json" : "application/problem+json"))
        let shape = isPromise ? SendAnswer.acceptedShape : SendAnswer.refusedShape
        #expect(shape.violations(of: .object(json)).isEmpty)
        #expect(shape.violations(of: .object(answer.json(isStreamLine: true))).isEmpty)
        #expect(json["who_can_fix"]?.stringValue == reason.whoCanFix(reason.details.first).rawValue)
        #expect(json["title"]?.stringValue != "")
    }

    @Test func `a send refused for itself says nothing about the recipient`() {
        let hidden = answer([delivery("d_1", .unknownType, .type)], hidesRecipient: true)
        #expect(hidden.deliveries.isEmpty)
        #expect(!String(decoding: hidden.answer().body, as: UTF8.self).contains("d_1"))
        for gate in Gate.allCases {
            var trace = Trace()
            trace[gate] = .fail(.factMissing, .params)
            #expect(
                SendAnswer.refusedBeforeRecipient(trace)
                    == (gate == .type || gate == .caller || gate == .critical))
        }
    }

    @Test func `a send with no destination at all lists none`() {
        let answer = answer([delivery(nil, .unknownRecipient, .destination)])
        #expect(answer.deliveries.isEmpty)
        #expect(answer.reason == .unknownRecipient)
    }

    @Test func `a repeated answer says that it is one, and is otherwise the same`() {
        let first = answer([delivery("d", .allowed)]).json()
        var again = answer([delivery("d", .allowed)], isReplayed: true).json()
        #expect(again["replayed"] == true)
        again["replayed"] = nil
        #expect(again == first)
    }

    @Test func `an answer to a send is these bytes`() {
        var delivery = delivery("d_1", .quietHoursDeferred, .quietHours)
        delivery.notBefore = Instant(milliseconds: 1_795_237_200_000)
        delivery.keyID = Samples.keyID
        #expect(
            String(decoding: answer([delivery]).answer().body, as: UTF8.self)
                == #"{"deliveries":[{"destination":"d_1","key_id":"5b1d9f0477aa4c318c02f3d190be6a55","not_before":"2026-11-21T05:00:00Z","outcome":"defer","reason":"quiet_hours_deferred"}],"detail":null,"id":"1","outcome":"defer","policy":"\#(String(repeating: "0", count: 64))","reason":"quiet_hours_deferred","send_id":"7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11","trail":{"index":7,"leaf":"\#(String(repeating: "0", count: 64))","origin":"test/trail"},"who_can_fix":"nobody"}"#
        )
    }

    @Test func `an answer's bytes are those of its members, whichever it has`() throws {
        for (position, reason) in Reason.allCases.enumerated() {
            for variant in 0..<32 {
                func has(_ bit: Int) -> Bool { variant >> bit & 1 == 1 }
                var first = delivery(
                    "d \"1\"", reason, reason == .allowed ? nil : .permission, reason.details.last)
                first.messageID = has(0) ? Samples.messageID : nil
                first.keyID = has(1) ? Samples.keyID : nil
                first.notBefore = has(2) ? Samples.moment : nil
                first.notes = has(3) ? .addressContested : []
                var answer = answer(
                    has(3) ? [first, delivery("d_2", .frequencyCap, .caps)] : [first], isReplayed: has(4))
                answer.owed = has(2) ? [DischargeMeans.allCases[0]] : []
                answer.hint = has(1) ? "Ask “support”." : nil
                answer.violations =
                    has(0)
                    ? [
                        Violation(.body(JSONPointer(["params", "a/b"])), "expected a text"),
                        Violation(.path("type"), "unknown"), Violation(.query("x"), "unknown"),
                    ] : []
                let isStreamLine = position.isMultiple(of: 2)
                let written = answer.answer(isStreamLine: isStreamLine).body
                #expect(
                    String(decoding: written, as: UTF8.self) == tree(of: answer, isStreamLine).description)
            }
        }
    }

    /// The members of an answer as the reference lists them.
    private func tree(of answer: SendAnswer, _ isStreamLine: Bool) -> JSONObject {
        let isRefusal = !answer.outcome.isPromise
        var tree: JSONObject = [
            "id": .string(answer.id.text), "send_id": .string(answer.sendID.description),
            "outcome": .string(answer.outcome.name), "reason": .string(answer.reason.rawValue),
            "detail": answer.detail.map { .string($0.rawValue) } ?? .null,
            "policy": .string(answer.policy.text),
            "who_can_fix": .string(answer.reason.whoCanFix(answer.detail).rawValue),
            "trail": [
                "index": 7, "leaf": .string(String(repeating: "00", count: 32)), "origin": "test/trail",
            ],
            "deliveries": .array(
                answer.deliveries.map { delivery in
                    var tree: JSONObject = [
                        "outcome": .string(delivery.outcome.name),
                        "reason": .string(delivery.reason.rawValue),
                    ]
                    tree["destination"] = delivery.destination.map { .string($0) }
                    tree["detail"] = delivery.detail.map { .string($0.rawValue) }
                    tree["message_id"] = delivery.messageID.map { .string($0.description) }
                    tree["key_id"] = delivery.keyID.map { .string($0.description) }
                    tree["not_before"] = delivery.notBefore.map { .string($0.rfc3339) }
                    if delivery.notes == .addressContested { tree["notes"] = ["address_contested"] }
                    return .object(tree)
                }),
        ]
        let bound = answer.reason.bindsID ? SendAnswer.boundIDHint : SendAnswer.freeIDHint
        tree["hint"] =
            isRefusal
            ? .string(answer.hint == nil ? bound : "Ask “support”; \(bound)")
            : answer.hint.map { .string($0) }
        if !answer.owed.isEmpty { tree["owed"] = .array(answer.owed.map { .string($0.rawValue) }) }
        if answer.isReplayed { tree["replayed"] = true }
        if isRefusal || isStreamLine { tree["status"] = isRefusal ? 403 : 202 }
        if isRefusal {
            tree["title"] = .string(answer.reason.title)
            tree["type"] = .string("urn:sendgate:reason:\(answer.reason.rawValue)")
        }
        // What is sent in spite of them is not described with any.
        if isRefusal, !answer.violations.isEmpty {
            tree["violations"] = .array(answer.violations.map { .object($0.json) })
        }
        return tree
    }

    @Test(arguments: ProblemName.allCases)
    func `a problem document is whole and its status is documented`(_ name: ProblemName) throws {
        let problem = Problem(name)
        #expect((400...599).contains(name.status))
        #expect(Problem.shownShape.violations(of: .object(problem.json)).isEmpty)
        let answer = problem.answer
        #expect(answer.status == name.status)
        #expect(answer.contentType == "application/problem+json")
        #expect(answer.headers.contains { $0.name == "retry-after" } == name.isTemporary)
        // Some route says that it can answer this; method_not_allowed is the one no operation can give.
        let documented = Route.all.contains { route in
            route.description.problems.contains { $0.names.contains(name) }
        }
        #expect(documented || name == .methodNotAllowed)
    }

    @Test func `a wrong method is told which are right`() throws {
        let problem = try #require(Problem(Route.table.match(method: "PATCH", target: "/v1/recipients/u")))
        #expect(problem.answer.headers.map(\.name) == ["allow"])
        #expect(problem.answer.headers.map(\.value) == ["DELETE, GET, HEAD, PUT"])
    }

    @Test func `a moment beyond the calendar does not stop an explanation`() {
        // Given facts whose quiet hours end when no calendar has a name for the day.
        var facts = Facts()
        facts.quietHours = .inside(endsAt: Instant(milliseconds: 9_007_199_254_740_991))
        var trace = Trace()
        trace[.quietHours] = .fail(.quietHoursDeferred)
        let decision = Decision(
            outcome: .defer, reason: .quietHoursDeferred, detail: nil,
            notBefore: Instant(milliseconds: 9_007_199_254_740_991), form: .sealed, interruption: .active,
            notes: [.criticalDowngraded], trace: trace)
        // When the decision is explained.
        let json = ExplainAnswer(
            policy: PolicyDigest(String(repeating: "0", count: 64)),
            request: AttestedRequest(
                caller: CallerName("c"), type: TypeID("t"), channel: .push, critical: true),
            deliveries: [.init(destination: nil, facts: facts, decision: decision, sentence: "It waits.")]
        ).json
        // Then the answer is whole.
        #expect(ExplainAnswer.shownShape.violations(of: .object(json)).isEmpty)
    }

    @Test func `readiness fails as a whole when one check does`() {
        let ready = ReadinessAnswer(checks: [.init(name: "a", isPassed: true, detail: nil)])
        let not = ReadinessAnswer(checks: ready.checks + [.init(name: "b", isPassed: false, detail: "x")])
        #expect(ready.answer.status == 200)
        #expect(not.answer.status == 503)
        #expect(ReadinessAnswer.shownShape.violations(of: .object(not.json)).isEmpty)
    }

    @Test func `a known caller holds one of a route's grants, or is refused`() {
        for permission in Route.all.map(\.description.permission) {
            switch permission {
            case .anybody, .anyCaller: #expect(permission.isSatisfied { _ in false })
            case .oneOf(let grants):
                #expect(!permission.isSatisfied { _ in false })
                for grant in grants { #expect(permission.isSatisfied { $0 == grant }) }
            }
        }
        // Only probes and the reference are for any process that can connect.
        let open = Route.all.map(\.description).filter { !$0.permission.needsCaller }
        #expect(Set(open.map(\.name)) == ["getHealth", "getReadiness", "getOpenAPI"])
    }
}
