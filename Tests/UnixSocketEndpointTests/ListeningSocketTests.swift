import Dispatch
import GatewayPipeline
import Glibc
import Logging
import ServiceLifecycle
import Testing
import WireProtocol

@testable import UnixSocketEndpoint
import UnixSockets

@Suite struct ListeningSocketTests {
    private func mode(_ path: String) -> UInt32 {
        var status = stat()
        return lstat(path, &status) == 0 ? UInt32(status.st_mode & 0o7777) : 0
    }

    private func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    private func open(_ file: SocketFile) throws(EndpointError) -> ListeningSocket {
        try ListeningSocket.open(.path(file))
    }

    /// Binds without listening and closes: what a crashed server leaves.
    private func leaveStaleSocket(_ path: String, type: Int32 = Int32(SOCK_STREAM.rawValue)) {
        let descriptor = socket(AF_UNIX, type, 0)
        _ = SystemCall.withAddress(of: path) { bind(descriptor, $0, $1) }
        close(descriptor)
    }

    @Test func `the directory and the socket have exactly the modes asked for`() async throws {
        try await withDirectory { directory in
            let file = SocketFile(
                path: directory + "/own/gate.sock", directoryMode: 0o751, socketMode: 0o640)
            let socket = try open(file)
            #expect(mode(directory + "/own") == 0o751)
            #expect(mode(file.path) == 0o640)
            #expect(mode(file.lockPath) == 0o600)
            socket.abandon()
            #expect(!exists(file.path))
        }
    }

    @Test func `the socket belongs to the configured owner and group`() async throws {
        try #require(getuid() == 0, "gives files to other users, so run it as root")
        try await withDirectory { directory in
            let file = SocketFile(path: directory + "/own/gate.sock", ownerID: 12, groupID: 34)
            let socket = try open(file)
            for path in [directory + "/own", file.path] {
                var status = stat()
                lstat(path, &status)
                #expect(status.st_uid == 12)
                #expect(status.st_gid == 34)
            }
            socket.abandon()
        }
    }

    @Test func `nobody can connect before the endpoint listens`() async throws {
        try await withDirectory { directory in
            let socket = try open(SocketFile(path: directory + "/gate.sock"))
            #expect(throws: RawError.self) { try RawClient(directory + "/gate.sock") }
            socket.abandon()
        }
    }

    @Test func `what a crash left behind is replaced`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            leaveStaleSocket(path)
            #expect(exists(path))
            let socket = try open(SocketFile(path: path))
            #expect(listen(socket.descriptor, 1) == 0)
            #expect(throws: Never.self) { try RawClient(path) }
            socket.abandon()
        }
    }

    @Test func `a socket somebody answers on is left alone`() async throws {
        try await withEndpoint { path, _ in
            // Without our lock, as a foreign server would be.
            unlink(path + ".lock")
            #expect(throws: EndpointError.socketInUse(path: path)) { try open(SocketFile(path: path)) }
            let client = try RawClient(path)
            try client.send(get())
            #expect(try await client.receiveResponse().status == 200)
        }
    }

    @Test func `a socket whose queue is full is somebody's`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
            defer { close(listener) }
            try #require(SystemCall.withAddress(of: path) { bind(listener, $0, $1) } == 0)
            try #require(listen(listener, 0) == 0)
            var waiting: [Int32] = []
            defer { for descriptor in waiting { close(descriptor) } }
            var failure: Int32 = 0
            while failure == 0, waiting.count < 10 {
                let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
                failure = SystemCall.withAddress(of: path) { connect(client, $0, $1) == 0 ? 0 : errno }
                waiting.append(client)
            }
            try #require(failure == EAGAIN)
            #expect(throws: EndpointError.socketInUse(path: path)) { try open(SocketFile(path: path)) }
            #expect(exists(path))
        }
    }

    @Test func `a datagram socket is somebody's`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            _ = SystemCall.withAddress(of: path) { bind(descriptor, $0, $1) }
            #expect(throws: EndpointError.socketInUse(path: path)) { try open(SocketFile(path: path)) }
            #expect(exists(path))
            close(descriptor)
        }
    }

    @Test func `two gateways on one path cannot both start`() async throws {
        try await withEndpoint { path, _ in
            #expect(throws: EndpointError.lockHeld(path: path + ".lock")) { try open(SocketFile(path: path)) }
        }
    }

    @Test func `a file that is no socket is never removed`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            close(Glibc.open(path, O_CREAT | O_WRONLY, 0o600))
            #expect(throws: EndpointError.notASocket(path: path)) { try open(SocketFile(path: path)) }
            #expect(exists(path))
            // Nor is what a link points to.
            unlink(path)
            leaveStaleSocket(directory + "/target.sock")
            symlink(directory + "/target.sock", path)
            #expect(throws: EndpointError.notASocket(path: path)) { try open(SocketFile(path: path)) }
            #expect(exists(directory + "/target.sock"))
        }
    }

    @Test func `a path is checked before the file system is touched`() throws {
        let long = "/" + String(repeating: "a", count: 107)
        #expect(throws: EndpointError.pathTooLong(path: long, byteCount: 108, byteCountMax: 107)) {
            try open(SocketFile(path: long))
        }
        #expect(throws: EndpointError.abstractSocket(path: "@gate")) { try open(SocketFile(path: "@gate")) }
        #expect(throws: EndpointError.abstractSocket(path: "\0gate")) { try open(SocketFile(path: "\0gate")) }
        #expect(throws: EndpointError.pathNotAbsolute(path: "gate.sock")) {
            try open(SocketFile(path: "gate.sock"))
        }
        #expect(throws: EndpointError.pathNotAbsolute(path: "")) { try open(SocketFile(path: "")) }
    }

    @Test func `a path of exactly 107 bytes works`() async throws {
        try await withDirectory { directory in
            let name = String(repeating: "s", count: 107 - directory.utf8.count - 1)
            let socket = try open(SocketFile(path: directory + "/" + name))
            #expect(listen(socket.descriptor, 1) == 0)
            #expect(throws: Never.self) { try RawClient(directory + "/" + name) }
            socket.abandon()
        }
    }

    @Test func `a directory everybody may write in is refused`() async throws {
        try await withDirectory { directory in
            chmod(directory, 0o1777)
            #expect(throws: EndpointError.directoryOpenToAll(path: directory, mode: 0o1777)) {
                try open(SocketFile(path: directory + "/gate.sock"))
            }
        }
    }

    @Test(arguments: [0o777, 0o1777, 0o757] as [UInt32])
    func `a directory everybody may write in is not made either`(_ mode: UInt32) async throws {
        try await withDirectory { directory in
            let file = SocketFile(path: directory + "/own/gate.sock", directoryMode: mode)
            #expect(throws: EndpointError.directoryOpenToAll(path: directory + "/own", mode: mode)) {
                try open(file)
            }
            #expect(!exists(directory + "/own"))
        }
    }

    private func owner(_ path: String) -> [UInt32] {
        var status = stat()
        return lstat(path, &status) == 0 ? [status.st_uid, status.st_gid] : []
    }

    @Test func `a directory that holds sockets only is brought to what is configured`() async throws {
        try #require(getuid() == 0, "gives files to other users, so run it as root")
        try await withDirectory { directory in
            let own = directory + "/own"
            for (mode, user, group) in [(0o755, 0, 0), (0o700, 0, 34), (0o770, 12, 0)]
                as [(UInt32, UInt32, UInt32)]
            {
                mkdir(own, 0o700)
                #expect(chown(own, user, group) == 0 && chmod(own, mode) == 0)
                leaveStaleSocket(own + "/other.sock")
                let socket = try open(
                    SocketFile(path: own + "/gate.sock", directoryMode: 0o750, ownerID: 12, groupID: 35))
                #expect(self.mode(own) == 0o750)
                #expect(owner(own) == [12, 35])
                socket.abandon()
                unlink(own + "/other.sock")
            }
        }
    }

    @Test func `a stranger's directory, and one that holds other things, is refused and left as it is`()
        async throws
    {
        try #require(getuid() == 0, "gives files to other users, so run it as root")
        try await withDirectory { directory in
            let own = directory + "/own"
            mkdir(own, 0o700)
            func refused(_ found: String, _ wanted: String, user: UInt32? = nil, group: UInt32? = nil) {
                let before = owner(own) + [mode(own)]
                #expect(
                    throws: EndpointError.directoryNotAsConfigured(path: own, found: found, wanted: wanted)
                ) {
                    try open(SocketFile(path: own + "/gate.sock", ownerID: user, groupID: group))
                }
                #expect(owner(own) + [mode(own)] == before)
            }
            // Another's, whatever its mode.
            chown(own, 4711, 0)
            chmod(own, 0o750)
            refused("4711:0, mode 750", "0:0, mode 750")
            refused("4711:0, mode 750", "12:0, mode 750", user: 12)
            // With no mode asked for either.
            let stranger = EndpointError.directoryNotAsConfigured(
                path: own, found: "4711:0, mode 750", wanted: "0:0, mode 750")
            #expect(throws: stranger) {
                try open(SocketFile(path: own + "/gate.sock", directoryMode: nil))
            }
            // Ours, with a file in it.
            chown(own, 0, 34)
            close(Glibc.open(own + "/keys", O_CREAT | O_WRONLY, 0o600))
            refused("0:34, mode 750", "0:35, mode 750", group: 35)
            chown(own, 0, 35)
            chmod(own, 0o755)
            refused("0:35, mode 755", "0:35, mode 750", group: 35)
            chmod(own, 0o750)
            let socket = try open(SocketFile(path: own + "/gate.sock", groupID: 35))
            socket.abandon()
        }
    }

    @Test(arguments: [4, 150] as [Int32]) func `as many connections wait to be accepted as the backlog says`(
        _ backlog: Int32
    ) async throws {
        var limits = EndpointLimits.test
        limits.listenBacklog = backlog
        let (entered, release) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // Nothing is accepted while the only event loop stands.
        let handler = ScriptedHandler { _, _, reply in
            entered.signal()
            release.wait()
            reply(Answer(status: 200, body: []))
        }
        try await withEndpoint(handler, limits: limits) { path, _ in
            defer { release.signal() }
            let client = try RawClient(path)
            try client.send(get())
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    entered.wait()
                    continuation.resume()
                }
            }
            var waiting: [Int32] = []
            defer { for descriptor in waiting { close(descriptor) } }
            var failure: Int32 = 0
            while failure == 0, waiting.count < 400 {
                let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
                failure = SystemCall.withAddress(of: path) { connect(descriptor, $0, $1) == 0 ? 0 : errno }
                waiting.append(descriptor)
            }
            #expect(failure == EAGAIN)
            // A queue is full when it is longer than the backlog (unix(7)); the last one did not get in.
            #expect(waiting.count - 1 == Int(backlog) + 1)
        }
    }

    @Test func `a directory two levels away is not made`() async throws {
        try await withDirectory { directory in
            #expect(throws: EndpointError.directoryMissing(path: directory + "/a/b")) {
                try open(SocketFile(path: directory + "/a/b/gate.sock"))
            }
        }
    }

    @Test func `the socket file is gone after a shutdown and the path can be used again`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            for _ in 1...2 {
                let endpoint = try UnixSocketEndpoint(
                    listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))], limits: .test,
                    handler: ScriptedHandler.echo, logger: .quiet)
                try await endpoint.start()
                #expect(exists(path))
                await endpoint.shutDown()
                #expect(!exists(path))
            }
        }
    }

    @Test func `a socket somebody put in our place stays`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            let endpoint = try UnixSocketEndpoint(
                listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))], limits: .test,
                handler: ScriptedHandler.echo, logger: .quiet)
            try await endpoint.start()
            unlink(path)
            leaveStaleSocket(path)
            await endpoint.shutDown()
            #expect(exists(path))
        }
    }

    @Test func `one listener that cannot start stops the others`() async throws {
        try await withDirectory { directory in
            let good = directory + "/good.sock"
            let bad = directory + "/bad.sock"
            close(Glibc.open(bad, O_CREAT | O_WRONLY, 0o600))
            let endpoint = try UnixSocketEndpoint(
                listeners: [good, bad].map { ListenerConfiguration(source: .path(SocketFile(path: $0))) },
                limits: .test, handler: ScriptedHandler.echo, logger: .quiet)
            await #expect(throws: EndpointError.notASocket(path: bad)) { try await endpoint.start() }
            #expect(!exists(good))
            await #expect(throws: EndpointError.alreadyStarted) { try await endpoint.start() }
        }
    }

    @Test func `an inherited socket is served and its file is left to its owner`() async throws {
        try await withDirectory { directory in
            let path = directory + "/systemd.sock"
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            _ = SystemCall.withAddress(of: path) { bind(descriptor, $0, $1) }
            #expect(throws: EndpointError.notAListener(descriptor: descriptor), "not listening yet") {
                try ListeningSocket.open(.inherited(descriptor: descriptor))
            }
            listen(descriptor, 8)
            let endpoint = try UnixSocketEndpoint(
                listeners: [ListenerConfiguration(source: .inherited(descriptor: descriptor))], limits: .test,
                handler: ScriptedHandler.echo, logger: .quiet)
            try await endpoint.start()
            let client = try RawClient(path)
            try client.send(get())
            #expect(try await client.receiveResponse().status == 200)
            client.close()
            await endpoint.shutDown()
            #expect(exists(path))
        }
    }

    @Test func `a descriptor that is no listening Unix socket is refused`() async throws {
        let internet = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        listen(internet, 1)
        defer { close(internet) }
        #expect(throws: EndpointError.notAListener(descriptor: internet)) {
            try ListeningSocket.open(.inherited(descriptor: internet))
        }
        let abstract = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(abstract) }
        // Binding only the family gives an abstract name of the kernel's choice (unix(7), autobind).
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = bind(abstract, $0, 2) }
        }
        listen(abstract, 1)
        #expect(throws: EndpointError.abstractSocket(path: "@descriptor \(abstract)")) {
            try ListeningSocket.open(.inherited(descriptor: abstract))
        }
    }

    private static func boundListener(_ path: String) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        _ = SystemCall.withAddress(of: path) { bind(descriptor, $0, $1) }
        listen(descriptor, 8)
        return descriptor
    }

    @Test func `an inherited socket in whose directory others may write is refused`() async throws {
        try #require(getuid() == 0, "gives files to other users, so run it as root")
        try await withDirectory { directory in
            let own = directory + "/own"
            mkdir(own, 0o755)
            let descriptor = Self.boundListener(own + "/gate.sock")
            defer { close(descriptor) }
            chmod(own, 0o777)
            #expect(throws: EndpointError.directoryOpenToAll(path: own, mode: 0o777)) {
                try ListeningSocket.open(.inherited(descriptor: descriptor))
            }
            chmod(own, 0o750)
            chown(own, 4711, 0)
            #expect(throws: EndpointError.directoryOfStranger(path: own, userID: 4711)) {
                try ListeningSocket.adoptPublic(descriptor)
            }
            chown(own, 0, 35)
            let taken = try ListeningSocket.open(.inherited(descriptor: descriptor))
            #expect(taken.descriptor == descriptor)
        }
    }

    @Test func `a public socket is taken over on the loopback alone`() throws {
        func listener(_ address: [UInt8]) -> Int32 {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            // As `struct sockaddr_in` is laid out: the family, a port of the kernel's choice, the address.
            let name = [UInt8(AF_INET), 0, 0, 0] + address + [UInt8](repeating: 0, count: 8)
            name.withUnsafeBytes { bytes in
                _ = bind(
                    descriptor, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self),
                    socklen_t(bytes.count))
            }
            listen(descriptor, 8)
            return descriptor
        }
        let (near, far) = (listener([127, 0, 0, 1]), listener([0, 0, 0, 0]))
        defer {
            close(near)
            close(far)
        }
        let taken = try ListeningSocket.adoptPublic(near)
        #expect(taken.descriptor == near)
        #expect(fcntl(near, F_GETFD) == FD_CLOEXEC)
        let error = #expect(throws: EndpointError.self) { try ListeningSocket.adoptPublic(far) }
        #expect(error?.description.contains("`0.0.0.0:") == true, "\(String(describing: error))")
    }

    @Test func `as a service it stops when the group does`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            let endpoint = try UnixSocketEndpoint(
                listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))], limits: .test,
                handler: ScriptedHandler.echo, logger: .quiet)
            let group = ServiceGroup(services: [endpoint], logger: .quiet)
            let running = Task { try await group.run() }
            await eventually { exists(path) }
            await group.triggerGracefulShutdown()
            try await running.value
            #expect(!exists(path))
        }
    }

    @Test func `cancelling the service stops it too`() async throws {
        try await withDirectory { directory in
            let path = directory + "/gate.sock"
            let endpoint = try UnixSocketEndpoint(
                listeners: [ListenerConfiguration(source: .path(SocketFile(path: path)))], limits: .test,
                handler: ScriptedHandler.echo, logger: .quiet)
            let running = Task { try await endpoint.run() }
            await eventually { exists(path) }
            running.cancel()
            try await running.value
            #expect(!exists(path))
        }
    }

    @Test func `names become numbers and unknown names nothing`() {
        #expect(UnixAccounts.userID(named: "root") == 0)
        #expect(UnixAccounts.groupID(named: "root") == 0)
        #expect(UnixAccounts.userID(named: "no-such-user-here") == nil)
        #expect(UnixAccounts.groupID(named: "") == nil)
    }

    @Test func `every error says what to do next`() {
        let errors: [EndpointError] = [
            .noListener, .contradictoryLimits("x"), .abstractSocket(path: "\0x"), .pathNotAbsolute(path: "x"),
            .pathTooLong(path: "x", byteCount: 1, byteCountMax: 1), .directoryMissing(path: "x"),
            .notADirectory(path: "x"), .directoryOpenToAll(path: "x", mode: 0o777),
            .directoryNotAsConfigured(path: "x", found: "0:0, mode 755", wanted: "0:0, mode 750"),
            .notASocket(path: "x"),
            .socketInUse(path: "x"), .lockHeld(path: "x"), .cannotTell(path: "x", errorNumber: EACCES),
            .portRefused(address: "x", errorNumber: EADDRINUSE), .notAListener(descriptor: 3),
            .inheritedSocketsMalformed("x"), .directoryOfStranger(path: "x", userID: 1),
            .notOnLoopback(address: "x"), .notifySocketMalformed("x"),
            .tooFewDescriptors(allowed: 1, needed: 2), .system(call: "bind", path: "x", errorNumber: EACCES),
            .listenerClosed(listener: 0), .alreadyStarted,
        ]
        for error in errors {
            #expect(!error.hint.isEmpty)
            #expect(!error.description.hasSuffix("."))
            #expect(!error.description.contains("\0"))
        }
    }
}
