import GateVocabulary
import SealedFormat
import Testing

@testable import KeyLifecycle

@Suite struct KeyStateTests {
    /// Every pair of the table, written out a second time: a transition that is not here must be refused.
    static let allowed: [KeyState: [KeyEvent: KeyState]] = [
        .preActivation: [.promote: .active, .revoke: .compromised, .destroy: .destroyed],
        .active: [.suspend: .suspended, .deactivate: .deactivated, .revoke: .compromised],
        .suspended: [.resume: .active, .deactivate: .deactivated, .revoke: .compromised],
        .deactivated: [.revoke: .compromised, .destroy: .destroyed],
        .compromised: [.destroy: .destroyed],
        .destroyed: [:],
    ]

    @Test(arguments: KeyState.allCases, KeyEvent.allCases)
    func `a transition happens exactly when the table has it`(state: KeyState, event: KeyEvent) throws {
        if let next = Self.allowed[state]?[event] {
            #expect(try state.after(event) == next)
        } else {
            #expect(throws: KeyTransitionRefused(state: state, event: event)) { try state.after(event) }
        }
    }

    @Test(arguments: KeyEvent.allCases)
    func `a refusal names the request that a caller can make`(event: KeyEvent) {
        let requests = ["promote", "suspend", "resume", "revoke", "destroy"].map { "`\($0)`" }
        for message in [
            KeyTransitionRefused(state: .destroyed, event: event).message,
            KeyringRefusal.lastOfPurpose(.link, event).message,
        ] {
            #expect(
                requests.contains { message.contains($0) } && !message.contains("`deactivate`"), "\(message)")
        }
    }

    @Test(arguments: [KeyState.compromised, .destroyed])
    func `nothing leads from a compromised or destroyed key back into use`(start: KeyState) throws {
        var reached: Set<KeyState> = [start]
        var frontier = [start]
        while let state = frontier.popLast() {
            for event in KeyEvent.allCases {
                if let next = try? state.after(event), reached.insert(next).inserted { frontier.append(next) }
            }
        }
        #expect(reached.isDisjoint(with: [.active, .suspended, .deactivated]))
    }
}
