import GateVocabulary
import Testing

@testable import GateSteps

/// The outbox as one table: what follows from each event in each state.
@Suite struct OutboxStateTests {
    /// States that a row of the table is about; what it does not name may be anything.
    struct States: Sendable {
        var pending = OutboxState.Pending.allCases
        var content = OutboxRecord.State.allCases

        static let any = States()
        static func only(
            _ pending: OutboxState.Pending..., content: [OutboxRecord.State] = OutboxRecord.State.allCases
        ) -> States {
            States(pending: pending, content: content)
        }
        static func content(_ content: OutboxRecord.State) -> States { States(content: [content]) }

        func include(_ state: OutboxState) -> Bool {
            pending.contains(state.pending) && content.contains(state.content)
        }
    }

    /// One event in some states: what it asks for while the message waits, is under way, and is in doubt.
    struct Row: Sendable {
        var event: OutboxEvent
        var states: States
        var answers: [OutboxState.Phase: OutboxAction]

        init(
            _ event: OutboxEvent, _ states: States, _ waiting: OutboxAction, _ underWay: OutboxAction,
            _ inDoubt: OutboxAction
        ) {
            self.event = event
            self.states = states
            answers = [.waiting: waiting, .underWay: underWay, .inDoubt: inDoubt, .gone: .nothing]
        }
    }

    static let later = Instant(milliseconds: 1_800_000_000_000)

    static let turns: [Row] = [
        Row(
            .turn(isFresh: true), .only(.cancellation), .withdraw(.cancelled), .giveUp(.cancelled),
            .giveUp(.cancelled)),
        Row(.turn(isFresh: true), .only(.retry, content: [.ready]), .handOver, .handOver, .handOver),
        Row(
            .turn(isFresh: true), .only(.decision, content: [.ready]), .decide(.old), .decide(.old),
            .decide(.old)),
        Row(
            .turn(isFresh: true), .only(.retry, .decision, content: [.deferred]), .compose,
            .giveUp(.damaged), .giveUp(.damaged)),
        Row(
            .turn(isFresh: true), .only(.retry, .decision, content: [.digesting]), .summarise,
            .giveUp(.damaged), .giveUp(.damaged)),
        Row(
            .turn(isFresh: false), .only(.cancellation), .withdraw(.cancelled), .giveUp(.cancelled),
            .giveUp(.cancelled)),
        Row(
            .turn(isFresh: false), .only(.retry, content: [.ready]), .decide(.old), .handOver, .handOver),
        Row(
            .turn(isFresh: false), .only(.decision, content: [.ready]), .decide(.old), .decide(.old),
            .decide(.old)),
        Row(
            .turn(isFresh: false), .only(.retry, .decision, content: [.deferred]), .compose,
            .giveUp(.damaged), .giveUp(.damaged)),
        Row(
            .turn(isFresh: false), .only(.retry, .decision, content: [.digesting]), .summarise,
            .giveUp(.damaged), .giveUp(.damaged)),
        Row(
            .expired, States(pending: [.cancellation]), .withdraw(.cancelled), .giveUp(.cancelled),
            .giveUp(.cancelled)),
        Row(
            .expired, .only(.retry, .decision), .withdraw(.expired), .giveUp(.expired),
            .giveUp(.expired)),
        Row(.recipientMissing, .any, .withdraw(.erased), .giveUp(.erased), .giveUp(.erased)),
        Row(
            .destinationMissing, .any, .withdraw(.destinationRemoved), .giveUp(.destinationRemoved),
            .giveUp(.destinationRemoved)),
        Row(.given, .any, .attempt(.underWay), .attempt(.inDoubt), .attempt(.inDoubt)),
    ]

    static let results: [Row] =
        [
            Row(.recalled, .any, .keep(.waiting), .keep(.waiting), .keep(.inDoubt)),
            Row(.neverTaken, .only(.retry), .keep(.waiting), .keep(.waiting), .keep(.inDoubt)),
            Row(.neverTaken, .only(.decision), .decide(.old), .decide(.old), .keep(.inDoubt)),
            Row(
                .neverTaken, .only(.cancellation), .withdraw(.cancelled), .withdraw(.cancelled),
                .keep(.inDoubt)),
            Row(.taken, .any, .end(.handedOver), .end(.handedOver), .end(.handedOver)),
            Row(.refused, .any, .end(.refusedByHop), .end(.refusedByHop), .end(.refusedByHop)),
            Row(
                .failed(.ambiguous, mayRetry: true), .only(.retry, .decision), .keep(.inDoubt),
                .keep(.inDoubt), .keep(.inDoubt)),
            Row(
                .failed(.ambiguous, mayRetry: true), States(pending: [.cancellation]), .giveUp(.cancelled),
                .giveUp(.cancelled), .giveUp(.cancelled)),
            Row(
                .failed(.ambiguous, mayRetry: false), States(pending: [.cancellation]), .giveUp(.cancelled),
                .giveUp(.cancelled), .giveUp(.cancelled)),
            Row(
                .failed(.ambiguous, mayRetry: false), .only(.retry, .decision), .giveUp(.expired),
                .giveUp(.expired), .giveUp(.expired)),
        ]
        + [
            Row(
                .unrepeatable, .only(.retry, .decision), .giveUp(.unrepeatable), .giveUp(.unrepeatable),
                .giveUp(.unrepeatable)),
            Row(
                .unrepeatable, .only(.cancellation), .giveUp(.cancelled), .giveUp(.cancelled),
                .giveUp(.cancelled)),
        ]
        + [HandOverObstacle.busy, .misconfigured, .notWritten].flatMap { obstacle in
            [
                Row(
                    .failed(obstacle, mayRetry: true), .only(.retry), .keep(.waiting), .keep(.waiting),
                    .keep(.inDoubt)),
                Row(
                    .failed(obstacle, mayRetry: true), .only(.decision), .decide(.old), .decide(.old),
                    .keep(.inDoubt)),
                Row(
                    .failed(obstacle, mayRetry: true), States(pending: [.cancellation]),
                    .withdraw(.cancelled), .withdraw(.cancelled), .giveUp(.cancelled)),
                Row(
                    .failed(obstacle, mayRetry: false), .only(.retry, .decision), .end(.expiredUnsent),
                    .end(.expiredUnsent), .giveUp(.expired)),
                Row(
                    .failed(obstacle, mayRetry: false), States(pending: [.cancellation]),
                    .withdraw(.cancelled), .withdraw(.cancelled), .giveUp(.cancelled)),
            ]
        }

    static let changes: [Row] =
        [
            Row(
                .cancelled, .any, .withdraw(.cancelled), .remember(.cancellation),
                .remember(.cancellation)),
            Row(
                .acknowledged, .any, .withdraw(.acknowledged), .remember(.decision), .remember(.decision)
            ),
            Row(
                .restored, States(content: [.ready]), .remember(.decision),
                .remember(.decision), .remember(.decision)),
            Row(
                .restored, States(content: [.deferred, .digesting]), .nothing,
                .remember(.decision), .remember(.decision)),
            Row(.destinationRemoved, .any, .withdraw(.destinationRemoved), .nothing, .nothing),
            Row(.erased, .any, .withdraw(.erased), .giveUp(.erased), .giveUp(.erased)),
        ]
        + WithdrawalCause.allCases.flatMap { cause in
            [
                Row(
                    .recipientChanged(cause), .any, .decide(cause), .remember(.decision),
                    .remember(.decision))
            ]
        }

    static let decisions: [Row] =
        [
            Row(.decidedAgain(.keep), .any, .confirm, .handOver, .handOver),
            Row(.decidedAgain(.waits(until: later)), .any, .postpone(until: later), .handOver, .handOver),
            Row(.decidedAgain(.withdraw), .any, .withdrawAsDecided, .giveUpAsDecided, .giveUpAsDecided),
            Row(.composed(.forward), .content(.deferred), .replace, .nothing, .nothing),
            Row(.composed(.defer), .content(.deferred), .replace, .nothing, .nothing),
            Row(.composed(.digest), .content(.deferred), .replace, .nothing, .nothing),
            Row(.composed(.suppress), .content(.deferred), .withdrawAsDecided, .nothing, .nothing),
            Row(.composed(.reject), .content(.deferred), .withdrawAsDecided, .nothing, .nothing),
            Row(.composed(.forward), .content(.digesting), .replace, .nothing, .nothing),
            Row(.composed(.defer), .content(.digesting), .keepDigesting, .nothing, .nothing),
            Row(.composed(.digest), .content(.digesting), .keepDigesting, .nothing, .nothing),
            Row(.composed(.suppress), .content(.digesting), .withdrawAsDecided, .nothing, .nothing),
            Row(.composed(.reject), .content(.digesting), .withdrawAsDecided, .nothing, .nothing),
            Row(.summarised, .content(.digesting), .close, .nothing, .nothing),
            Row(.summarised, .content(.deferred), .nothing, .nothing, .nothing),
            Row(.summarised, .content(.ready), .nothing, .nothing, .nothing),
        ]
        + Outcome.allCases.map { Row(.composed($0), .content(.ready), .nothing, .nothing, .nothing) }

    static let table = turns + results + changes + decisions

    static let states: [OutboxState] = OutboxState.Phase.allCases.flatMap { phase in
        OutboxRecord.State.allCases.flatMap { content in
            OutboxState.Pending.allCases.map { pending in
                OutboxState(phase: phase, content: content, pending: pending)
            }
        }
    }

    /// The number of an event's case: a new one does not compile before it has a number, and the table before it has a row.
    static func number(of event: OutboxEvent) -> Int {
        switch event {
        case .turn: 0
        case .expired: 1
        case .recipientMissing: 2
        case .destinationMissing: 3
        case .given: 4
        case .recalled: 5
        case .neverTaken: 6
        case .taken: 7
        case .refused: 8
        case .failed: 9
        case .cancelled: 10
        case .acknowledged: 11
        case .recipientChanged: 12
        case .restored: 13
        case .destinationRemoved: 14
        case .erased: 15
        case .decidedAgain: 16
        case .composed: 17
        case .summarised: 18
        case .unrepeatable: 19
        }
    }

    @Test func `every event in every state has exactly the answer of the table`() {
        let events = Set(Self.table.map(\.event))
        #expect(Set(events.map(Self.number)) == Set(0...19))
        for obstacle in HandOverObstacle.allCases {
            for mayRetry in [false, true] { #expect(events.contains(.failed(obstacle, mayRetry: mayRetry))) }
        }
        for event in events {
            for state in Self.states {
                let rows = Self.table.filter { $0.event == event && $0.states.include(state) }
                #expect(rows.count == 1, "\(event), \(state)")
                #expect(state.after(event) == rows.first?.answers[state.phase], "\(event), \(state)")
            }
        }
    }

    @Test(arguments: Set(table.map(\.event)))
    func `whatever is heard of a message that is gone, nothing is done`(event: OutboxEvent) {
        for state in Self.states where state.phase == .gone { #expect(state.after(event) == .nothing) }
    }

    @Test(arguments: Set(table.map(\.event)))
    func `what the hop may have is never said to be unsent, and never waits as if it were not`(
        event: OutboxEvent
    ) {
        for state in Self.states where state.phase == .inDoubt {
            switch state.after(event) {
            case .withdraw, .withdrawAsDecided, .close, .replace, .end(.expiredUnsent), .keep(.waiting):
                Issue.record("\(event), \(state)")
            default: break
            }
        }
    }

    @Test func `what is under way is withdrawn only when the relay says that the hop does not have it`() {
        let ends = Set(
            Self.table.map(\.event).filter { event in
                Self.states.contains { state in
                    guard state.phase == .underWay, case .withdraw = state.after(event) else { return false }
                    return true
                }
            })
        #expect(
            ends == [
                .neverTaken, .failed(.busy, mayRetry: true), .failed(.busy, mayRetry: false),
                .failed(.misconfigured, mayRetry: true), .failed(.misconfigured, mayRetry: false),
                .failed(.notWritten, mayRetry: true), .failed(.notWritten, mayRetry: false),
            ])
    }

    /// What is true of the state and the event, stated a second time: who may be said to have ended a message so.
    private static func isTrue(_ cause: WithdrawalCause, of state: OutboxState, after event: OutboxEvent)
        -> Bool
    {
        switch cause {
        case .cancelled: return event == .cancelled || state.pending == .cancellation
        case .damaged: return state.content != .ready && state.phase != .waiting
        case .expired:
            switch event {
            case .expired, .failed(_, mayRetry: false): return true
            default: return false
            }
        case .erased: return event == .erased || event == .recipientMissing
        case .destinationRemoved: return event == .destinationRemoved || event == .destinationMissing
        case .acknowledged: return event == .acknowledged
        case .unrepeatable: return event == .unrepeatable
        case .old, .due, .summarised, .consentChanged, .preferenceChanged, .recipientChanged, .keyChanged,
            .policyChanged:
            return false
        }
    }

    @Test func `the cause that ends a message is what happened, in every state and after every event`() {
        for event in Set(Self.table.map(\.event)) {
            for state in Self.states {
                switch state.after(event) {
                case .withdraw(let cause), .giveUp(let cause):
                    #expect(Self.isTrue(cause, of: state, after: event), "\(cause): \(event), \(state)")
                    // A reader of the event finds its words under its reason.
                    #expect(cause.english != nil, "\(cause): \(event), \(state)")
                case .end(.expiredUnsent):
                    #expect(
                        Self.isTrue(.expired, of: state, after: event) && state.pending != .cancellation,
                        "\(event), \(state)")
                case .end(.ambiguous): Issue.record("no cause: \(event), \(state)")
                default: break
                }
            }
        }
    }

    @Test func `each end of a message is one event, whose reason is why it ended`() {
        let whys =
            WithdrawalCause.allCases.map { MessageEnd.Why.cause($0) }
            + Reason.allCases.map { MessageEnd.Why.decision($0) }
        for why in whys {
            let (unsent, inDoubt) = (MessageEnd.unsent(why), MessageEnd.tried(.ambiguous, why: why))
            #expect(unsent.kind == .withdrawn && unsent.reason == why.code)
            #expect(inDoubt.kind == .ambiguous && inDoubt.reason == why.code && !inDoubt.settlesDedupe)
            #expect(MessageEnd.Why(code: why.code)?.code == why.code)
        }
        for result in HandOver.allCases {
            let end = MessageEnd.tried(result, why: nil)
            #expect(end.kind.rawValue == result.rawValue && end.reason == nil)
        }
        let summary = SendID(high: 1, low: 2)
        #expect(MessageEnd.summarised(into: summary).reason == summary.uuidText)
        #expect(MessageEnd.unsent(.cause(.erased)).settlesDedupe)
        #expect(!MessageEnd.unsent(.cause(.cancelled)).settlesDedupe)
    }

    private func row() -> OutboxRecord {
        OutboxRecord(
            message: MessageID(high: 1, low: 1), send: SendID(high: 2, low: 2),
            subject: SubjectID(high: 3, low: 3), destination: Tag(high: 4, low: 4),
            request: AttestedRequest(
                caller: CallerName("payments"), type: TypeID("transaction.failed"), channel: .push,
                critical: false),
            category: .transactional, tier: .important, state: .ready, form: .sealed, interruption: .active,
            key: nil, headers: [], body: [], facts: [], decidedAt: Self.later, notBefore: Self.later,
            expiresAt: Self.later.advanced(bySeconds: 60))
    }

    @Test func `a row says in which state it is`() {
        var row = row()
        #expect(
            OutboxState(row)
                == OutboxState(phase: .waiting, content: .ready, pending: .retry))
        row.attemptedAt = Self.later
        #expect(OutboxState(row).phase == .underWay)
        row.remember(.decision)
        #expect(OutboxState(row).pending == .decision)
        // Who cancelled it does not want it decided again.
        row.remember(.cancellation)
        #expect(OutboxState(row).pending == .cancellation)
        row.move(to: .inDoubt)
        #expect(OutboxState(row).phase == .inDoubt && row.attemptedAt == Self.later)
        row.state = .digesting
        #expect(OutboxState(row).content == .digesting)
    }

    @Test func `a message that the hop does not have is as it was before its try`() {
        let waiting = row()
        var row = waiting
        row.attemptedAt = Self.later
        row.move(to: .waiting)
        #expect(row == waiting)
    }
}
