package import CourierModel
import Foundation
import GateVocabulary
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
        guard clock.allows(order) else { return .tooLate }
        var session: SMTPSession
        do throws(SMTPFault) {
            session = try await take()
        } catch {
            return error.outcome
        }
        // The wait for a session may have been long.
        guard clock.allows(order) else {
            await give(session, back: true)
            return .tooLate
        }
        let (outcome, isUsable) = await session.send(mail) {
            guard self.clock.allows(order) else { return .tooLate }
            return await begin()
        }
        await give(session, back: isUsable)
        return outcome
    }

    private func take() async throws(SMTPFault) -> SMTPSession {
        // An idle session that the relay has closed meanwhile costs a look and no mail.
        while let idle = await sessions.take() {
            if await idle.answersReset() { return idle }
            await idle.connection.close()
            await sessions.keepPlace()
        }
        do throws(SMTPFault) {
            return try await SMTPSession.open(configuration, clientName, tls, signIn.withLock { $0 })
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
        let isChanged = signIn.withLock { signIn in
            defer { signIn = read }
            return signIn != read
        }
        // A session under way goes on with what it signed in with.
        if isChanged { for session in await sessions.removeIdle() { await session.connection.quit() } }
    }
}

/// The places for sessions, and the sessions that wait for a mail.
private actor SMTPSessions {
    private let countMax: Int
    private var count = 0
    private var idle: [SMTPSession] = []
    private var waiting: [CheckedContinuation<SMTPSession?, Never>] = []

    init(countMax: Int) { self.countMax = countMax }

    /// Takes a place, and the session that was used last if one is idle; `nil` leaves it to the caller to open one. Waits while
    /// every place is taken. Each call is answered by one of ``leave(_:)``.
    func take() async -> SMTPSession? {
        if let session = idle.popLast() { return session }
        if count < countMax {
            count += 1
            return nil
        }
        return await withCheckedContinuation { waiting.append($0) }
    }

    /// After ``take()`` gave a session that is gone, and before the next one: the place goes back.
    func keepPlace() { count -= 1 }

    /// - Parameter session: Can take another mail; `nil` when it is closed.
    func leave(_ session: SMTPSession?) {
        if !waiting.isEmpty {
            waiting.removeFirst().resume(returning: session)
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
