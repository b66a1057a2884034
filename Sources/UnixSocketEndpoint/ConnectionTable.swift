import NIOCore

/// Names one connection of one event loop, also after it has closed: the generation tells.
struct ConnectionKey: Hashable, Sendable {
    var index: Int
    var generation: UInt32
}

/// One event loop's connections. Only that loop touches it.
final class ConnectionTable {
    private struct Slot {
        var connection: HTTPConnection?
        var generation: UInt32 = 0
    }

    private var slots: [Slot] = []
    private var free: [Int] = []
    private(set) var count = 0
    /// For the answers written until the next sweep.
    var date = HTTPDate.now()
    /// Connections that got an answer in the batch of answers being delivered; empty between batches.
    var touched: [HTTPConnection] = []
    /// Read by a connection that was accepted just before the listener closed, when it is added.
    private(set) var isDraining = false

    func startDraining() {
        isDraining = true
        forEach { $0.drain() }
    }

    func add(_ connection: HTTPConnection) -> ConnectionKey {
        let index = free.popLast() ?? slots.count
        if index == slots.count { slots.append(Slot()) }
        slots[index].connection = connection
        count += 1
        return ConnectionKey(index: index, generation: slots[index].generation)
    }

    func remove(_ key: ConnectionKey) {
        guard self[key] != nil else { return }
        slots[key.index].connection = nil
        slots[key.index].generation &+= 1
        free.append(key.index)
        count -= 1
    }

    subscript(_ key: ConnectionKey) -> HTTPConnection? {
        slots[key.index].generation == key.generation ? slots[key.index].connection : nil
    }

    /// `body` may close connections and so change the table.
    func forEach(_ body: (HTTPConnection) -> Void) {
        for index in slots.indices {
            if let connection = slots[index].connection { body(connection) }
        }
    }
}
