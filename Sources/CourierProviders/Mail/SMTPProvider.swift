package import CourierModel
import Foundation
import GateVocabulary
import NIOCore
import NIOSSL
import Synchronization

/// E-mail through a submission relay (RFC 6409), which signs it with the domain's key (DKIM, RFC 6376).
///
/// A mail that the relay may have taken is never handed over a second time: see ``SingleCopy``.
package final class SMTPProvider: DeliveryProvider {
    private let configuration: MailConfiguration
    private let clientName: String
    private let tls: NIOSSLContext?
    private let clock: ProviderClock
    private let single: SingleCopy
    private let signIn: Mutex<SMTPSignIn>
    private let sessions: SMTPSessions
    private let suspects = Mutex(SuspectAnswers())

    /// - Parameter single: Over the courier's journal.
    /// - Throws: ``CredentialError``, ``UnusableTrustFile``.
    package init(_ configuration: MailConfiguration, clock: ProviderClock, single: SingleCopy) throws {
        self.configuration = configuration
        self.clock = clock
        self.single = single
        clientName = configuration.clientName ?? ProcessInfo.processInfo.hostName
        signIn = Mutex(try SMTPSignIn(configuration))
        tls =
            configuration.security == .none
            ? nil
            : try NIOSSLContext(configuration: TLSTrust(file: configuration.trust).client(protocols: []))
        sessions = SMTPSessions(countMax: configuration.connectionsMax)
    }

    package func deliver(_ order: DeliveryOrder) async -> DeliveryOutcome {
        await single.deliver(order) { begin in await self.send(order, begin) }
    }

    private func send(
        _ order: DeliveryOrder, _ begin: @Sendable () async -> DeliveryOutcome?
    ) async -> DeliveryOutcome {
        let mail: MailMessage
        do throws(MailMessage.Refusal) {
            mail = try MailMessage(order, from: configuration.sender, at: clock.now())
        } catch {
            return .failed(reason: error.reason)
        }
        if let refusal = clock.refusal(of: order) { return refusal }
        var session: SMTPSession
        do throws(SMTPFault) {
            guard let taken = try await take(for: order) else { return .tooLate }
            session = taken
        } catch {
            return clock.refusal(of: order) ?? error.outcome
        }
        // The wait for a session may have been long.
        if let refusal = clock.refusal(of: order) {
            await give(session, back: true)
            return refusal
        }
        session.connection.end(at: deadline(of: order))
        let (outcome, isUsable) = await session.send(
            mail,
            weigh: { outcome in
                let now = self.clock.uptimeMilliseconds()
                return self.suspects.withLock { $0.dead(outcome, of: order.message.uuidText, at: now) }
            },
            mayBegin: {
                if let refusal = self.clock.refusal(of: order) { return refusal }
                return await begin()
            }, mayEnd: { self.clock.refusal(of: order) })
        await give(session, back: isUsable)
        if case .accepted = outcome {
            let now = clock.uptimeMilliseconds()
            suspects.withLock { $0.accepted(at: now) }
        }
        return outcome
    }

    package var descriptorCountMax: Int { 2 * configuration.connectionsMax }

    private func deadline(of order: DeliveryOrder) -> NIODeadline? {
        order.answerBy.map { _ in .now() + .milliseconds(clock.left(order, atMost: .max)) }
    }

    /// - Returns: `nil` when the time of the order has passed.
    private func take(for order: DeliveryOrder) async throws(SMTPFault) -> SMTPSession? {
        // An idle session that the relay has closed meanwhile costs a look and no mail.
        places: while true {
            switch await sessions.take(
                milliseconds: clock.left(order, atMost: DeliveryOrder.answerMilliseconds))
            {
            case .none: return nil
            case .new: break places
            case .idle(let idle):
                idle.connection.end(at: deadline(of: order))
                if await idle.answersReset() { return idle }
                await idle.connection.close()
                await sessions.keepPlace()
            }
        }
        // The wait for a place may have been long, and opening a session is not short.
        guard clock.allows(order) else {
            await sessions.leave(nil)
            return nil
        }
        do throws(SMTPFault) {
            return try await SMTPSession.open(
                configuration, clientName, tls, signIn.withLock { $0 }, by: deadline(of: order))
        } catch {
            await sessions.leave(nil)
            throw error
        }
    }

    private func give(_ session: SMTPSession, back isUsable: Bool) async {
        guard isUsable else {
            await session.connection.close()
            return await sessions.leave(nil)
        }
        guard session.messageCount < configuration.messagesPerConnectionMax else {
            await session.connection.quit()
            return await sessions.leave(nil)
        }
        session.connection.end(at: nil)
        session.connection.park(milliseconds: configuration.idleMilliseconds)
        await sessions.leave(session)
    }

    package func check() async -> [ProviderFinding] {
        let subject =
            "SMTP to \(configuration.endpoint) (\(configuration.security.rawValue)), EHLO"
            + (signIn.withLock { $0.mechanism }.map { ", AUTH \($0)" } ?? "")
        if let fault = configuration.sender.fault {
            return [ProviderFinding("the sender of e-mails", fault: fault)]
        }
        do throws(SMTPFault) {
            let session = try await SMTPSession.open(configuration, clientName, tls, signIn.withLock { $0 })
            await session.connection.quit()
            return [ProviderFinding(subject)]
        } catch {
            return [ProviderFinding(subject, fault: error.why)]
        }
    }

    /// Sessions are opened by the mails, so there is nothing to hold but the end: idle ones take leave of the relay.
    package func run() async throws {
        await untilCancelled()
        for session in await sessions.removeIdle() { await session.connection.quit() }
    }

    package func reloadCredentials() async throws {
        let read = try SMTPSignIn(configuration)
        suspects.withLock { $0.reset() }
        let isChanged = signIn.withLock { signIn in
            defer { signIn = read }
            return signIn != read
        }
        // A session under way goes on with what it signed in with.
        if isChanged { for session in await sessions.removeIdle() { await session.connection.quit() } }
    }

    package var doubt: String? { suspects.withLock { $0.doubt } }

    package func confirmDeadAddresses() {
        let now = clock.uptimeMilliseconds()
        suspects.withLock { $0.confirmDead(at: now) }
    }
}

/// The places for sessions, and the sessions that wait for a mail.
private actor SMTPSessions {
    private let countMax: Int
    private var count = 0
    private var idle: [SMTPSession] = []
    private var waiting:
        [(number: Int, promise: CheckedContinuation<Place, Never>, timer: Task<Void, Never>)] =
            []
    private var number = 0

    enum Place {
        /// The one that was used last.
        case idle(SMTPSession)
        /// The caller opens one.
        case new
        /// The time has passed.
        case none
    }

    init(countMax: Int) { self.countMax = countMax }

    /// Takes a place. Waits while every place is taken, for so long. Each place is given back by one ``leave(_:)``.
    func take(milliseconds: Int64) async -> Place {
        if let session = idle.popLast() { return .idle(session) }
        if count < countMax {
            count += 1
            return .new
        }
        number += 1
        let number = number
        return await withCheckedContinuation { promise in
            let timer = Task {
                // The timer is cancelled when a place was found; `giveUp` then finds no waiting call.
                try? await Task.sleep(for: .milliseconds(milliseconds))
                giveUp(number)
            }
            waiting.append((number, promise, timer))
        }
    }

    private func giveUp(_ number: Int) {
        guard let index = waiting.firstIndex(where: { $0.number == number }) else { return }
        waiting.remove(at: index).promise.resume(returning: .none)
    }

    /// After ``take(milliseconds:)`` gave a session that is gone, and before the next one: the place goes back.
    func keepPlace() { count -= 1 }

    /// - Parameter session: Can take another mail; `nil` when it is closed.
    func leave(_ session: SMTPSession?) {
        if !waiting.isEmpty {
            let next = waiting.removeFirst()
            next.timer.cancel()
            next.promise.resume(returning: session.map(Place.idle) ?? .new)
        } else if let session {
            idle.append(session)
        } else {
            count -= 1
        }
    }

    func removeIdle() -> [SMTPSession] {
        defer { idle = [] }
        count -= idle.count
        return idle
    }
}

/// Returns when the task is cancelled.
func untilCancelled() async {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
    for await _ in stream {}
    continuation.finish()
}
