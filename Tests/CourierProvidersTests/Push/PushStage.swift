import CanonicalJSON
import CourierModel
import CourierProviders
import Foundation
import GateVocabulary
import Synchronization

/// `peers/push_service.py`: Apple, Google and Expo on one port of the loopback.
final class PushService {
    struct Request {
        var path: String
        var headers: JSONObject
        var body: String
        /// The rule of the provider's that it breaks.
        var broken: String?
        var connection: Int64
        /// Streams that were open on its connection, itself included.
        var open: Int64
    }

    let port: Int
    private let process: PeerProcess

    /// - Parameter window: Bytes of a body that a stream takes; HTTP/2's own when `nil`.
    init(
        certificate: String = "good", streams: Int = 100, protocols: String = "h2,http/1.1",
        window: Int? = nil
    ) throws {
        process = try PeerProcess(
            "push_service.py",
            [
                try PushKeys.folder.get().path, "--certificate", certificate, "--streams", "\(streams)",
                "--protocols", protocols,
            ] + (window.map { ["--window", "\($0)"] } ?? []))
        port = Int(try process.readLine()) ?? 0
    }

    var endpoint: String { "localhost:\(port)" }

    @discardableResult
    private func tell(_ command: JSONObject) throws -> JSONObject {
        try process.write(String(decoding: CanonicalJSON.write(command), as: UTF8.self))
        return try process.readJSON()
    }

    /// What to do with the next requests, e.g. `["do": "reset"]`.
    func next(_ behaviours: JSONValue...) throws { try tell(["next": .array(behaviours)]) }
    func release() throws { try tell(["release": true]) }
    func allow(streams: Int64) throws { try tell(["streams": .integer(streams)]) }
    func setClock(ahead seconds: Int64) throws { try tell(["clock": .integer(seconds)]) }

    func connectionCount() throws -> Int64 {
        try tell(["connections": true])["connections"]?.integerValue ?? 0
    }

    /// The requests since the last call.
    func requests() throws -> [Request] {
        guard case .array(let requests)? = try tell(["log": true])["requests"] else { return [] }
        return requests.map { request in
            Request(
                path: request["path"]?.stringValue ?? "", headers: request["headers"]?.objectValue ?? [:],
                body: request["body"]?.stringValue ?? "", broken: request["broken"]?.stringValue,
                connection: request["connection"]?.integerValue ?? 0, open: request["open"]?.integerValue ?? 0
            )
        }
    }

    /// Those since the last call, when there are `count`.
    func requests(_ count: Int) async throws -> [Request] {
        var found: [Request] = []
        let deadline = ContinuousClock.now + .seconds(20)
        while found.count < count {
            found += try requests()
            guard ContinuousClock.now < deadline else {
                throw PeerError("\(found.count) requests of \(count)")
            }
            await Task.yield()
        }
        return found
    }
}

/// Keys and certificates that `peers/push_keys.py` makes once for all tests.
enum PushKeys {
    static let folder: Result<TestFolder, any Error> = Result {
        let folder = try TestFolder()
        let process = try PeerProcess("push_keys.py", [folder.path])
        guard try process.readLine() == "made" else { throw PeerError("push_keys.py failed") }
        return folder
    }

    static func credential(_ name: String) throws -> CredentialFile {
        CredentialFile(path: try folder.get().file(name))
    }

    /// The service account whose tokens come from `service`.
    static func account(_ service: PushService, in folder: TestFolder) throws -> CredentialFile {
        let text = try String(contentsOfFile: try self.folder.get().file("account.json"), encoding: .utf8)
        return try folder.secret("account.json", text.replacing("TOKEN_PORT", with: "\(service.port)"))
    }
}

/// Clocks that a test moves forward from the real time, because the services check it.
final class MovableClock: Sendable {
    private let wallOffset = Mutex<Int64>(0)
    private let uptimeOffset = Mutex<Int64>(0)
    private let isPatient = Mutex(true)
    /// How often somebody asked for the gateway's patience.
    private let askCount = Mutex(0)

    var clock: ProviderClock {
        ProviderClock(
            now: {
                Instant(
                    milliseconds: ProviderClock.system.now().milliseconds + self.wallOffset.withLock { $0 })
            },
            isOver: { _ in
                self.askCount.withLock { $0 += 1 }
                return self.isPatient.withLock { !$0 }
            },
            uptimeMilliseconds: {
                ProviderClock.uptimeMilliseconds() + self.uptimeOffset.withLock { $0 }
            })
    }

    /// Time passes on all clocks.
    func pass(minutes: Int64) {
        uptimeOffset.withLock { $0 += minutes * 60_000 }
        wallOffset.withLock { $0 += minutes * 60_000 }
    }

    /// Somebody sets the wall clock.
    func setWall(ahead seconds: Int64) { wallOffset.withLock { $0 = seconds * 1_000 } }
    func asked() async { while askCount.withLock({ $0 }) == 0 { await Task.yield() } }
    func endPatience() { isPatient.withLock { $0 = false } }
}

enum PushOrder {
    static let token = String(repeating: "0a1b2c3d", count: 8)

    /// The bodies that the gateway's composition is held to, as orders: headers in the first line of a file, the body in the second.
    static func golden(_ prefix: String, token: String) throws -> [DeliveryOrder] {
        let folder =
            #filePath.components(separatedBy: "/CourierProvidersTests/")[0]
            + "/PayloadCompositionTests/Golden"
        return try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix(prefix) }
            .sorted().enumerated().map { number, name in
                let lines = try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
                    .split(separator: "\n").prefix(2)
                    .map { try CanonicalJSON.read(Array($0.utf8)) }
                return order(
                    UInt64(number), token: token,
                    headers: (lines[0].objectValue?.members ?? []).reduce(into: [:]) {
                        $0[$1.key] = $1.value.stringValue
                    }, body: lines[1])
            }
    }

    static func apple(
        _ number: UInt64 = 1, token: String = token, topic: String = "com.example.app",
        collapses: Bool = true,
        text: String = "A", handOverBy: HandOverDeadline? = nil
    ) -> DeliveryOrder {
        var headers = [
            "apns-expiration": "0", "apns-id": "ignored", "apns-priority": "10", "apns-push-type": "alert",
            "apns-topic": topic,
        ]
        if collapses { headers["apns-collapse-id"] = "00112233445566778899aabbccddeeff" }
        return order(
            number, token: token, headers: headers,
            body: ["aps": ["alert": ["body": .string(text), "title": "T"]]], handOverBy: handOverBy)
    }

    static func google(
        _ number: UInt64 = 1, token: String = "fcm-token:1", collapses: Bool = true, text: String = "A"
    ) -> DeliveryOrder {
        var data: JSONObject = ["body": .string(text)]
        if collapses { data["collapse"] = "00112233445566778899aabbccddeeff" }
        return order(
            number, token: token, headers: [:],
            body: ["message": ["android": ["priority": "HIGH", "ttl": "300s"], "data": .object(data)]])
    }

    static func expo(
        _ number: UInt64 = 1, token: String = "ExponentPushToken[a]", collapses: Bool = true
    ) -> DeliveryOrder {
        var body: JSONObject = ["body": "B", "title": "T"]
        if collapses { body["collapseId"] = "00112233445566778899aabbccddeeff" }
        return order(number, token: token, headers: [:], body: .object(body))
    }

    private static func order(
        _ number: UInt64, token: String, headers: [String: String], body: JSONValue,
        handOverBy: HandOverDeadline? = nil
    ) -> DeliveryOrder {
        DeliveryOrder(
            message: MessageID(high: 0xABCD_EF01_2345_4678, low: 0x9000_0000_0000_0000 + number),
            send: SendID(high: 2, low: number), destination: DestinationID("phone"), channel: .push,
            platform: nil, provider: nil, app: "main", token: token, headers: headers, body: body,
            expiresAt: ProviderClock.system.now().advanced(bySeconds: 86_400), handOverBy: handOverBy)
    }
}

extension DeliveryProvider {
    func start(_ order: DeliveryOrder) -> Task<DeliveryOutcome, Never> { Task { await deliver(order) } }

    /// Asks in a task that is cancelled already.
    func deliverCancelled(_ order: DeliveryOrder) async -> DeliveryOutcome {
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await deliver(order)
        }.value
    }

    /// All of them at once; the outcomes come in the order of the orders.
    func start(_ orders: [DeliveryOrder]) -> Task<[DeliveryOutcome], Never> {
        Task {
            await withTaskGroup(of: (Int, DeliveryOutcome).self) { group in
                for (index, order) in orders.enumerated() {
                    group.addTask { (index, await self.deliver(order)) }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }
}
