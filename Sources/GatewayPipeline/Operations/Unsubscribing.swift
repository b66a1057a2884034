import BundleModel
import CompliancePolicy
import GateSteps
package import GateVocabulary
import GateRecords
import Synchronization
import WireProtocol

/// Looks links up on the readers' threads and has the engine carry out their changes, with a bound on both.
///
/// Every token, whatever is wrong with it, costs the same look-up: a token that no key made is looked up under an id
/// that no link has, so that the time of an answer does not tell a forged link from that of an erased person.
package final class LinkHandler: UnsubscribeHandler {
    /// Look-ups and changes under way at once.
    package static let underWayCountMax = 64

    private let gateway: Gateway
    private let underWay = Mutex(0)

    package init(_ gateway: Gateway) { self.gateway = gateway }

    package var languages: ReaderLanguages { gateway.policy.current.languages }
    package var brand: String { gateway.policy.current.bundle.brand }

    package func isAuthentic(_ token: String) -> Bool {
        gateway.dependencies.keys.links.id(in: token) != nil
    }

    package func standing(of token: String, reply: @escaping @Sendable (LinkAnswer) -> Void) {
        admit(reply) { [self] reply in look(at: id(in: token), reply: reply) }
    }

    package func mute(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void) {
        change(token, reply: reply) { step, id, now in
            try step.mute(id, at: now).map { .known($0) }
        }
    }

    package func undo(_ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void) {
        change(token, reply: reply) { step, id, now in
            try step.undoMute(id, at: now).map { $0.isUndone ? .known($0.standing) : .tooLate($0.standing) }
        }
    }

    /// Counts one question from here to its answer.
    private func admit(
        _ reply: @escaping @Sendable (LinkAnswer) -> Void,
        _ body: (@escaping @Sendable (LinkAnswer) -> Void) -> Void
    ) {
        let isAdmitted = underWay.withLock { count in
            guard count < Self.underWayCountMax else { return false }
            count += 1
            return true
        }
        guard isAdmitted else { return reply(.busy) }
        body { [self] answer in
            underWay.withLock { $0 -= 1 }
            reply(answer)
        }
    }

    private func id(in token: String) -> Tag {
        gateway.dependencies.keys.links.id(in: token) ?? Self.noID
    }

    /// The tag of no link: a keyed tag equals it with no more likelihood than any other value.
    private static let noID = Tag(high: 0, low: 0)

    private func look(at id: Tag, reply: @escaping @Sendable (LinkAnswer) -> Void) {
        let isTaken = gateway.readers.submit(for: .gateway) { [gateway] in
            let answer: LinkAnswer
            do {
                let now = gateway.dependencies.clock.now()
                answer = try gateway.store.read { store in
                    .known(
                        try LinkTarget.load(try store.unsubscribeLink(id), from: store)
                            .standing(at: now, under: gateway.policy.current))
                }
            } catch is Problem {
                answer = .unknown
            } catch {
                answer = .busy
            }
            reply(answer)
        }
        if !isTaken { reply(.busy) }
    }

    private func change(
        _ token: String, reply: @escaping @Sendable (LinkAnswer) -> Void,
        _ change: @escaping @Sendable (StepContext, Tag, Instant) throws -> LinkAnswer?
    ) {
        let id = id(in: token)
        admit(reply) { [self] reply in
            // Looked up first, so that what leads nowhere never waits in the engine's queue.
            look(at: id) { [self] found in
                guard case .known = found else { return reply(found) }
                submit(id, reply: reply, change)
            }
        }
    }
    /// Switches the category of a link off, or takes that back, as one step of the engine; as several where more people have
    /// its number or mailbox than one step changes. Each step commits what it did, so a stop between two leaves the link as one
    /// that was not used yet, and the next use goes on.
    ///
    /// - Parameter change: Gives `nil` where more is to be done.
    private func submit(
        _ id: Tag, reply: @escaping @Sendable (LinkAnswer) -> Void,
        _ change: @escaping @Sendable (StepContext, Tag, Instant) throws -> LinkAnswer?
    ) {
        gateway.engine.submit(
            InlineOperation(
                lane: .general, asks: [.unsubscribeLink(id)], refused: { _ in reply(.busy) }
            ) { [self] batch in
                let answer: LinkAnswer?
                do {
                    answer = try batch.step { try change($0, id, $0.now()) }
                } catch is Problem {
                    answer = .unknown
                }
                return { _ in if let answer { reply(answer) } else { self.submit(id, reply: reply, change) } }
            })
    }
}
