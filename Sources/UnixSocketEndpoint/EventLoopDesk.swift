import GatewayPipeline
import NIOCore
import Synchronization

/// Names one connection of one event loop, also after it has closed: the generation tells.
struct ConnectionKey: Hashable, Sendable {
    var index: Int
    var generation: UInt32
}

/// One event loop's connections. Only that loop touches it.
final class ConnectionTable {
    private struct Seat {
        var connection: HTTPConnection?
        var generation: UInt32 = 0
    }

    private var seats: [Seat] = []
    private var free: [Int] = []
    private(set) var count = 0
    /// For the answers written until the next sweep.
    var date = HTTPDate.now()
    /// Connections that got an answer in the batch of letters being delivered; empty between batches.
    var touched: [HTTPConnection] = []
    /// A connection accepted just before the listener closed is told when it comes in.
    private(set) var isDraining = false

    func startDraining() {
        isDraining = true
        forEach { $0.drain() }
    }

    func add(_ connection: HTTPConnection) -> ConnectionKey {
        let index = free.popLast() ?? seats.count
        if index == seats.count { seats.append(Seat()) }
        seats[index].connection = connection
        count += 1
        return ConnectionKey(index: index, generation: seats[index].generation)
    }

    func remove(_ key: ConnectionKey) {
        guard self[key] != nil else { return }
        seats[key.index].connection = nil
        seats[key.index].generation &+= 1
        free.append(key.index)
        count -= 1
    }

    subscript(_ key: ConnectionKey) -> HTTPConnection? {
        seats[key.index].generation == key.generation ? seats[key.index].connection : nil
    }

    /// `body` may close connections and so change the table.
    func forEach(_ body: (HTTPConnection) -> Void) {
        for index in seats.indices {
            if let connection = seats[index].connection { body(connection) }
        }
    }
}

/// Where answers for one event loop are left, from any thread.
///
/// The first answer left in an empty box wakes the loop; those that come before it has looked ride along.
/// So one commit of 64 sends is one hop per loop, whatever number of connections it answers.
///
/// A loop runs every task there is before it looks at its sockets again. Whoever keeps it in answers, and is handed
/// new lines with each of them, would therefore keep everybody else unheard: seconds, measured with a batch of
/// 10,000 repeated sends. So what comes in while a box is emptied waits until the sockets have had their turn.
final class EventLoopDesk: Sendable {
    let loop: any EventLoop
    let clock: EndpointClock
    let counters = LoopCounters()
    private let connections: NIOLoopBound<ConnectionTable>
    private let box = Mutex(Box())

    private struct Box {
        var letters: [Letter] = []
        var isLoopAwake = false
    }

    private struct Letter: Sendable {
        var key: ConnectionKey
        var sequence: UInt64
        /// `nil` when the handler dropped its `reply` without calling it.
        var reply: WireReply?
    }

    /// - Precondition: Called on `loop`.
    init(loop: any EventLoop, clock: EndpointClock) {
        self.loop = loop
        self.clock = clock
        connections = NIOLoopBound(ConnectionTable(), eventLoop: loop)
    }

    /// - Precondition: Called on ``loop``.
    var table: ConnectionTable { connections.value }

    func post(_ reply: WireReply?, to key: ConnectionKey, sequence: UInt64) {
        if loop.inEventLoop {
            if let connection = table[key] {
                connection.deliver(reply, sequence: sequence)
                connection.pump()
            }
            return
        }
        let wakes = box.withLock { box in
            box.letters.append(Letter(key: key, sequence: sequence, reply: reply))
            defer { box.isLoopAwake = true }
            return !box.isLoopAwake
        }
        if wakes { loop.execute { self.deliverLetters() } }
    }

    private func deliverLetters() {
        let letters = box.withLock { box in
            var taken: [Letter] = []
            // As much room as last time: the next batch is likely as large.
            taken.reserveCapacity(box.letters.count)
            swap(&taken, &box.letters)
            return taken
        }
        let table = table
        for letter in letters {
            guard let connection = table[letter.key] else { continue }
            connection.deliver(letter.reply, sequence: letter.sequence)
            if !connection.isTouched {
                connection.isTouched = true
                table.touched.append(connection)
            }
        }
        // Each connection writes once for all its answers. The handler may answer from within, but on the
        // loop that delivers directly, so `touched` does not grow here.
        for connection in table.touched {
            connection.isTouched = false
            connection.pump()
        }
        table.touched.removeAll(keepingCapacity: true)
        let isMore = box.withLock { box in
            box.isLoopAwake = !box.letters.isEmpty
            return box.isLoopAwake
        }
        if isMore { afterSockets { self.deliverLetters() } }
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
final class ReplyTicket: Sendable {
    private let desk: EventLoopDesk
    private let key: ConnectionKey
    private let sequence: UInt64
    private let admission: Admission
    private let isUsed = Atomic<Bool>(false)

    init(desk: EventLoopDesk, key: ConnectionKey, sequence: UInt64, admission: Admission) {
        self.desk = desk
        self.key = key
        self.sequence = sequence
        self.admission = admission
    }

    func answer(_ reply: WireReply) {
        let wasUsed = isUsed.exchange(true, ordering: .acquiringAndReleasing)
        precondition(!wasUsed, "the request handler called `reply` twice for one request")
        admission.requestAnswered()
        desk.post(reply, to: key, sequence: sequence)
    }

    deinit {
        if isUsed.load(ordering: .acquiring) { return }
        // A handler that forgets to answer must not hold the connection and its place for ever.
        admission.requestAnswered()
        desk.post(nil, to: key, sequence: sequence)
    }
}
