import CPerfEvent
import Foundation

/// Counters of the kernel over the threads of this process, one each (perf_event_open(2)).
///
/// A process may count its own threads wherever `perf_event_paranoid` is 2 or less, which is the kernel's default.
package struct ThreadCounters {
    /// What is counted.
    package enum Quantity: String, Sendable {
        /// Instructions outside the kernel: needs a counter of the processor, which virtual machines seldom show.
        case instructions
        /// Calls of the C library's `malloc`, `calloc` and `realloc`, which Swift, OpenSSL and SQLite all use: probes, which
        /// root may set. A probe slows each call down, and takes the kernel up to a second to set.
        case allocations
        /// Nanoseconds on a processor, which every kernel counts.
        case nanoseconds

        fileprivate func counters() throws -> [Counter] {
            switch self {
            case .instructions:
                [Counter(type: sendgate_counts_hardware, config: sendgate_counts_instructions)]
            case .allocations: try Counter.allocators()
            case .nanoseconds: [Counter(type: sendgate_counts_software, config: sendgate_counts_nanoseconds)]
            }
        }
    }

    /// What perf_event_open(2) is asked for.
    fileprivate struct Counter {
        var type: UInt32
        var config: UInt64 = 0
        /// Of a function: the file it lies in, and where.
        var path: String?
        var offset: UInt64 = 0

        func open(on thread: pid_t) -> Int32 { sendgate_open_counter(type, config, path, offset, thread) }

        static func allocators() throws -> [Counter] {
            // Documented in the kernel's Documentation/ABI/testing/sysfs-bus-event_source-devices.
            let number = try? String(
                contentsOfFile: "/sys/bus/event_source/devices/uprobe/type", encoding: .utf8)
            guard let type = number.flatMap({ UInt32($0.filter { !$0.isWhitespace }) }) else {
                throw Refused("this kernel has no uprobes")
            }
            let maps = try Self.maps()
            return try ["malloc", "calloc", "realloc"].map { name in
                guard let address = dlsym(nil, name),
                    let place = place(UInt64(UInt(bitPattern: address)), in: maps)
                else { throw Refused("the C library's `\(name)` is not found") }
                return Counter(type: type, path: place.path, offset: place.offset)
            }
        }

        /// `/proc/self/maps`, which has no length and comes in pieces.
        private static func maps() throws -> String {
            guard let file = FileHandle(forReadingAtPath: "/proc/self/maps") else {
                throw Refused("/proc/self/maps cannot be read")
            }
            defer { try? file.close() }
            var bytes = Data()
            while let piece = try file.read(upToCount: 65_536), !piece.isEmpty { bytes += piece }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// The file that an address is mapped from, and where in it (proc(5), `maps`).
        private static func place(_ address: UInt64, in maps: String) -> (path: String, offset: UInt64)? {
            for line in maps.split(separator: "\n") {
                let fields = line.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
                let range = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
                guard fields.count == 6, range.count == 2, (range[0]..<range[1]).contains(address),
                    let offset = UInt64(fields[2], radix: 16)
                else { continue }
                return (fields[5].filter { !$0.isWhitespace }, address - range[0] + offset)
            }
            return nil
        }
    }

    /// Why nothing is counted.
    package struct Refused: Error, Hashable, CustomStringConvertible {
        package let description: String

        package init(_ description: String) { self.description = description }

        /// - Parameters:
        ///   - number: The `errno` of perf_event_open(2).
        ///   - paranoid: What `/proc/sys/kernel/perf_event_paranoid` says; `nil` where that cannot be read.
        init(errno number: Int32, paranoid: Int?, of quantity: Quantity = .instructions) {
            switch number {
            case ENOENT: self.init("this machine has no hardware counter (ENOENT)")
            case EOPNOTSUPP: self.init("this machine has no hardware counter (EOPNOTSUPP)")
            case ENODEV: self.init("this machine has no hardware counter (ENODEV)")
            case EACCES where quantity == .allocations, EPERM where quantity == .allocations:
                self.init("a probe needs root or CAP_PERFMON")
            case EACCES, EPERM:
                let name = number == EACCES ? "EACCES" : "EPERM"
                switch paranoid {
                case let level? where level > 2:
                    self.init("perf_event_paranoid is \(level), needs 2 or less (\(name))")
                case let level:
                    self.init(
                        "the kernel forbids it, with perf_event_paranoid \(level.map(String.init) ?? "unknown"): a container's system call filter may (\(name))"
                    )
                }
            case ENOSYS: self.init("this kernel has no perf_event_open (ENOSYS)")
            default: self.init("perf_event_open: \(String(cString: strerror(number)))")
            }
        }
    }

    private var counters: [(stage: String, descriptor: Int32)] = []

    /// Where probes of allocations are set: one for each function.
    static func allocatorPlaces() throws -> [(path: String, offset: UInt64)] {
        try Counter.allocators().map { ($0.path ?? "", $0.offset) }
    }

    /// Begins to count.
    ///
    /// - Parameter except: A thread of the measurement's own.
    /// - Throws: ``Refused``.
    init(_ quantity: Quantity, except: pid_t = 0) throws {
        let folder = "/proc/self/task"
        let wanted = try quantity.counters()
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            guard let thread = pid_t(name), thread != except else { continue }
            let words = (try? String(contentsOfFile: "\(folder)/\(name)/comm", encoding: .utf8)) ?? ""
            let stage = GatewayStage.named(words.filter { !$0.isNewline })
            for counter in wanted {
                let descriptor = counter.open(on: thread)
                let number = errno
                // The thread ended meanwhile.
                if descriptor < 0, number == ESRCH { break }
                guard descriptor >= 0 else {
                    close()
                    throw Refused(errno: number, paranoid: Self.paranoid, of: quantity)
                }
                counters.append((stage, descriptor))
            }
        }
    }

    private static var paranoid: Int? {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/perf_event_paranoid", encoding: .utf8)
        return text.flatMap { Int($0.filter { !$0.isWhitespace }) }
    }

    /// Events so far, by ``GatewayStage``; those of a thread that another one made are with its maker.
    ///
    /// - Throws: ``Refused`` where a counter had no place on the processor.
    func read() throws -> [String: UInt64] {
        var counts: [String: UInt64] = [:]
        for counter in counters {
            var value = sendgate_counter_value()
            let count = withUnsafeMutableBytes(of: &value) {
                Foundation.read(counter.descriptor, $0.baseAddress, $0.count)
            }
            guard count == MemoryLayout<sendgate_counter_value>.size else {
                throw Refused("a counter cannot be read: \(String(cString: strerror(errno)))")
            }
            guard let scaled = Self.scaled(value.value, enabled: value.enabled, running: value.running) else {
                throw Refused("the processor's counters are taken by others")
            }
            counts[counter.stage, default: 0] += scaled
        }
        return counts
    }

    /// Call once.
    func close() {
        for counter in counters { Foundation.close(counter.descriptor) }
    }

    /// What a counter would have counted, had it not shared its place with others (perf_event_open(2), `read_format`).
    ///
    /// - Parameters:
    ///   - enabled: Nanoseconds for which it was wanted.
    ///   - running: Nanoseconds for which it counted.
    /// - Returns: `nil` for one that never had a place.
    static func scaled(_ count: UInt64, enabled: UInt64, running: UInt64) -> UInt64? {
        guard running < enabled else { return count }
        return running > 0 ? UInt64(Double(count) * Double(enabled) / Double(running)) : nil
    }
}

/// Which part of a gateway a thread works for.
package enum GatewayStage {
    package static let engine = "engine"

    /// - Parameter thread: Its name, as the kernel has it.
    package static func named(_ thread: String) -> String {
        switch thread.prefix(while: { $0 != "-" }) {
        case "engine": engine
        case "publisher": "publisher"
        case "sealer": "sealing"
        case "reader": "reading"
        case "NIO": "sockets"
        default: "other threads"
        }
    }
}
