import Glibc

/// Listening sockets handed over by a service manager (sd_listen_fds(3)).
package struct InheritedSockets: Hashable, Sendable {
    /// One socket that the service manager opened.
    package struct Socket: Hashable, Sendable {
        /// `FileDescriptorName=` of the socket unit; `unknown` when none was given, as systemd says it.
        package var name: String
        package var descriptor: Int32

        package init(name: String, descriptor: Int32) {
            self.name = name
            self.descriptor = descriptor
        }
    }

    /// In the order of the descriptors.
    package var sockets: [Socket]

    /// Of a process that no service manager started.
    package static let none = InheritedSockets()

    private init() { sockets = [] }

    /// Stands before the name of such a socket where a configuration has an address.
    package static let configurationPrefix = "systemd:"
    /// The first descriptor of the protocol (`SD_LISTEN_FDS_START`).
    package static let firstDescriptor: Int32 = 3
    /// More than any unit of ours needs; a larger number belongs to another program.
    package static let countMax = 64

    /// Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`.
    ///
    /// Empty when the variables are absent or meant for another process: a child inherits its parent's
    /// environment, which is why the protocol carries the pid.
    ///
    /// - Parameter environment: The process's own; an argument so that tests need not change it.
    package init(environment: [String: String], processID: Int32) throws(EndpointError) {
        sockets = []
        guard let pidText = environment["LISTEN_PID"], let countText = environment["LISTEN_FDS"] else {
            return
        }
        guard let pid = Self.number(pidText) else {
            throw .inheritedSocketsMalformed("LISTEN_PID is `\(pidText)`")
        }
        guard pid == Int(processID) else { return }
        guard let count = Self.number(countText), count <= Self.countMax else {
            throw .inheritedSocketsMalformed(
                "LISTEN_FDS is `\(countText)`, at most \(Self.countMax) are taken")
        }
        var names = [String](repeating: "unknown", count: count)
        if let nameText = environment["LISTEN_FDNAMES"] {
            let given = nameText.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            guard given.count == count || (count == 0 && nameText.isEmpty) else {
                throw .inheritedSocketsMalformed(
                    "LISTEN_FDNAMES names \(given.count) sockets, LISTEN_FDS says \(count)")
            }
            if count > 0 { names = given }
        }
        sockets = names.enumerated().map {
            Socket(name: $0.element, descriptor: Self.firstDescriptor + Int32($0.offset))
        }
    }

    /// The descriptors with this name; one socket unit may carry several.
    package func descriptors(named name: String) -> [Int32] {
        sockets.filter { $0.name == name }.map(\.descriptor)
    }

    /// Whether a socket unit may give this name (systemd.socket(5), `FileDescriptorName=`).
    package static func isName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
    }

    /// The one descriptor with this name.
    ///
    /// - Throws: ``EndpointError/inheritedSocketsMalformed(_:)`` when there is none, or more than one.
    package func onlyDescriptor(named name: String) throws(EndpointError) -> Int32 {
        let found = descriptors(named: name)
        guard found.count == 1 else {
            throw .inheritedSocketsMalformed(
                "\(found.count) sockets named `\(name)` were handed over, and one is needed")
        }
        return found[0]
    }

    /// Decimal digits only: no sign, no space, no leading zero.
    private static func number(_ text: String) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            text == "0" || !text.hasPrefix("0")
        else { return nil }
        return Int(text)
    }
}
