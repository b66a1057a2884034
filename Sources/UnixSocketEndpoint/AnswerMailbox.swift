import GatewayPipeline
import NIOCore
import Synchronization
import WireProtocol

/// Where answers for one event loop are left, from any thread.
///
/// The first answer left in an empty box wakes the loop; answers that come before the loop has looked are delivered with it.
/// So one commit of 64 sends is one hop per loop, whatever number of connections it answers.
///
/// A loop runs every task there is before it looks at its sockets again. A connection that gets answers all the time, and
/// gives new lines to the handler with each of them, would therefore keep every other one unread: for seconds, measured
/// with a batch of 10,000 repeated sends. So what comes in while a box is emptied stays there until the loop has looked at
/// its sockets.
final class AnswerMailbox: Sendable {
    let loop: any EventLoop
    let clock: EndpointClock
    let counters = LoopCounters()
    private let connections: NIOLoopBound<ConnectionTable>
    private let box = Mutex(Box())

    private struct Box {
        var waiting: [Posted] = []
        var isLoopAwake = false
    }

    private struct Posted: Sendable {
        var key: ConnectionKey
        var sequence: UInt64
        /// `nil` when the handler will never answer.
        var answer: Answer?
    }

    /// - Precondition: Called on `loop`.
    init(loop: any EventLoop, clock: EndpointClock) {
        self.loop = loop
        self.clock = clock
        connections = NIOLoopBound(ConnectionTable(), eventLoop: loop)
    }

    /// - Precondition: Called on ``loop``.
    var table: ConnectionTable { connections.value }

    func post(_ answer: Answer?, to key: ConnectionKey, sequence: UInt64) {
        if loop.inEventLoop {
            if let connection = table[key] {
                connection.deliver(answer, sequence: sequence)
                connection.answersDelivered()
            }
            return
        }
        let wakes = box.withLock { box in
            box.waiting.append(Posted(key: key, sequence: sequence, answer: answer))
            defer { box.isLoopAwake = true }
            return !box.isLoopAwake
        }
        if wakes { loop.execute { self.deliverAnswers() } }
    }

    private func deliverAnswers() {
        let posts = box.withLock { box in
            var taken: [Posted] = []
            // As much capacity as last time: the next batch is likely as large.
            taken.reserveCapacity(box.waiting.count)
            swap(&taken, &box.waiting)
            return taken
        }
        let table = table
        for post in posts {
            guard let connection = table[post.key] else { continue }
            connection.deliver(post.answer, sequence: post.sequence)
            if !connection.isTouched {
                connection.isTouched = true
                table.touched.append(connection)
            }
        }
        // Each connection writes once for all its answers. The handler may answer from within, but on the
        // loop that delivers directly, so `touched` does not grow here.
        for connection in table.touched {
            connection.isTouched = false
            connection.answersDelivered()
        }
        table.touched.removeAll(keepingCapacity: true)
        let isMore = box.withLock { box in
            box.isLoopAwake = !box.waiting.isEmpty
            return box.isLoopAwake
        }
        if isMore { afterSockets { self.deliverAnswers() } }
    }

    /// Looks at the deadlines of every connection, again and again.
    ///
    /// - Precondition: Called while ``loop`` runs.
    func scheduleSweep(everyMilliseconds interval: Int64) -> RepeatedTask {
        let interval = TimeAmount.milliseconds(interval)
        return loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
            let now = self.clock.now()
            let table = self.table
            table.date = HTTPDate.now()
            table.forEach { $0.sweep(now) }
        }
    }

    /// Runs something once the loop has looked at its sockets.
    ///
    /// - Precondition: Called on ``loop``.
    func afterSockets(_ work: @escaping @Sendable () -> Void) {
        loop.scheduleTask(in: Self.socketTurn) { work() }
    }

    /// Long enough that the loop finds nothing to run and looks at its sockets; short against any commit.
    private static let socketTurn = TimeAmount.microseconds(50)
}

/// The handler's right, and duty, to answer one request once.
final class AnswerTicket: Sendable {
    private let mailbox: AnswerMailbox
    private let key: ConnectionKey
    private let sequence: UInt64
    private let admission: Admission
    private let isUsed = Atomic<Bool>(false)

    init(mailbox: AnswerMailbox, key: ConnectionKey, sequence: UInt64, admission: Admission) {
        self.mailbox = mailbox
        self.key = key
        self.sequence = sequence
        self.admission = admission
    }

    func answer(_ answer: Answer) {
        let wasUsed = isUsed.exchange(true, ordering: .acquiringAndReleasing)
        precondition(!wasUsed, "the request handler called `reply` twice for one request")
        admission.requestAnswered()
        mailbox.post(answer, to: key, sequence: sequence)
    }

    deinit {
        if isUsed.load(ordering: .acquiring) { return }
        // A handler that forgets to answer must not hold the connection and its place for ever.
        admission.requestAnswered()
        mailbox.post(nil, to: key, sequence: sequence)
    }
}
