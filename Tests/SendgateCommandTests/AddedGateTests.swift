@testable import AuditTrail
import BundleModel
import CanonicalJSON
import CompliancePolicy
import Foundation
import GateSteps
import GateTestKit
import GateVocabulary
import OpenSSLCrypto
import PolicyFiles
import SendPlanning
import Testing
import TrailDirectory

@testable import GateRecords
@testable import sendgate

/// A build with one gate more than this one: it sends nothing to Android.
private enum FourteenGates: LaterGates {
    static let newest = GateRevision(gateCount: 14)
    /// As if the fact had come with the gate.
    static let facts = ["platform": newest]

    static func result(
        at position: Int, _ facts: Facts, _: Jurisdiction, _: CompiledRule
    ) -> GateResult {
        switch facts.platform {
        case .android: .fail(.typeDisabled)
        case .ios: .pass
        case nil: .fail(.factMissing, .osPermission)
        }
    }
}

/// A gate is added, and what was recorded before it stays readable (decision SG-0035).
@Suite struct AddedGateTests {
    private static let old = CommandLineRun.repository.appending(path: "Tests/Fixtures/Trails/first").path
    private static let signer = NoteSigner(
        name: "test.example/trail",
        key: try! Ed25519PrivateKey(seed: SecretBytes(copying: [UInt8](repeating: 7, count: 32))))!
    private static let trust = TrailTrust(origin: "test.example/trail", keys: [signer.verifierKey])

    private let folder: TemporaryFolder
    private let old: [[UInt8]]
    private let policies: (PolicyDigest) throws -> CompiledPolicy?

    init() throws {
        folder = try TemporaryFolder()
        let trail = try CopiedTrail(at: Self.old)
        let key = try #require(
            NoteVerifierKey(
                parsing: try String(contentsOfFile: "\(Self.old)/trail.pub", encoding: .utf8)
                    .trimmingCharacters(in: .newlines)))
        var entries: [[UInt8]] = []
        _ = try TrailVerifier(trail.reader, trusting: TrailTrust(origin: key.name, keys: [key])).verify(
            visit: { entries.append(Array($0.bytes)) })
        old = entries
        var archive: [PolicyDigest: CompiledPolicy] = [:]
        for digest in try trail.reader.policyDigests() { archive[digest] = try trail.policy(digest) }
        policies = { [archive] in archive[$0] }
    }

    private var lastTime: Instant { get throws { try TrailEntry(reading: try #require(old.last)).time } }

    private func start(of version: String, at index: Int) throws -> [UInt8] {
        var members = try TrailEntry(reading: old[0]).members
        members["version"] = .string(version)
        return try TrailEntry(kind: .start, index: UInt64(index), time: lastTime, members: members)
            .encoded().bytes
    }

    /// The sends of the old trail, each decided once more by fourteen gates and recorded after it under ids of its own.
    private func newer() throws -> [[UInt8]] {
        var entries = [try start(of: "0.2.0", at: old.count)]
        for bytes in old where try TrailEntry(reading: bytes).kind == .send {
            var send = try SendEntry.read(bytes).entry
            guard let policy = try policies(send.policy) else { continue }
            let number = UInt64(entries.count)
            send.send = SendID(high: 14, low: number)
            send.request.idTag = send.request.idTag.map { _ in Tag(high: 14, low: number) }
            for position in send.deliveries.indices {
                send.deliveries[position].message = send.deliveries[position].message.map { _ in
                    MessageID(high: UInt64(14 + position), low: number)
                }
                send.deliveries[position].decision = decide(
                    send.attested, given: send.deliveries[position].facts, under: policy,
                    asking: FourteenGates.newest, of: FourteenGates.self)
            }
            entries.append(
                try send.bytes(index: UInt64(old.count + entries.count), time: try lastTime))
        }
        return entries
    }

    private func results(of entries: [[UInt8]], _ gates: any LaterGates.Type) throws -> (
        same: Int, others: [ReplayResult]
    ) {
        var same = 0
        var others: [ReplayResult] = []
        for bytes in entries {
            switch try replay(bytes, policies: policies, of: gates) {
            case .same: same += 1
            case .notReplayable(.decidesNothing): break
            case let result: others.append(result)
            }
        }
        return (same, others)
    }

    /// Publishes entries as a trail of its own, with the policies of the old one.
    private func publish(_ entries: [[UInt8]]) throws -> String {
        let path = folder.path("trail")
        let writer = try TrailDirectoryWriter(openingAt: path, trusting: Self.trust)
        _ = try writer.integrate(entries, startingAt: 0)
        _ = try writer.publishCheckpoint { try $0.signed(by: [Self.signer]) }
        try writer.writeVerifierKeys([Self.signer.verifierKey])
        let archive = "\(path)/policies"
        if FileManager.default.fileExists(atPath: archive) {
            try FileManager.default.removeItem(atPath: archive)
        }
        try FileManager.default.copyItem(atPath: "\(Self.old)/policies", toPath: archive)
        return path
    }

    @Test func `this build asks every gate there is`() {
        #expect(Int(GateRevision.newest.gateCount) == Gate.allCases.count)
        #expect(BuiltGates.newest == .newest)
        #expect(Gate.allCases.map { Int($0.rawValue) } == Array(Gate.allCases.indices))
    }

    @Test
    func `a build with a fourteenth gate replays an old trail unchanged, and its own decisions after it`()
        throws
    {
        let before = try results(of: old, FourteenGates.self)
        #expect(before.same > 30 && before.others.isEmpty, "\(before.others)")
        let entries = try newer()
        var stopped = 0
        for bytes in entries.dropFirst() {
            for delivery in try SendEntry.read(bytes).entry.deliveries {
                #expect(delivery.decision.trace.revision == FourteenGates.newest)
                if delivery.decision.decidingPosition == 13 { stopped += 1 }
            }
        }
        #expect(stopped > 0, "the fourteenth gate decided nothing")
        let both = try results(of: old + entries, FourteenGates.self)
        #expect(both.same == before.same + entries.count - 1 && both.others.isEmpty, "\(both.others)")
    }

    @Test func `a result of the fourteenth gate that was changed is found`() throws {
        var send = try SendEntry.read(try #require(try newer().last)).entry
        let honest = send.deliveries[0].decision.trace[position: 13]
        send.deliveries[0].decision.trace[position: 13] = honest == .pass ? .notApplicable : .pass
        let bytes = try send.bytes(index: 0, time: try lastTime)
        guard case .differs(let differences) = try replay(bytes, policies: policies, of: FourteenGates.self)
        else {
            Issue.record("nothing differs")
            return
        }
        #expect(differences.map(\.pointer) == [JSONPointer(["deliveries", "0", "decision", "trace", "13"])])
    }

    @Test func `a fact that came with the gate is not missing from entries before it`() throws {
        func differences(_ gates: any LaterGates.Type) throws -> Set<String> {
            var fold = EvidenceFold(of: gates)
            var found: Set<String> = []
            for bytes in old {
                var bytes = bytes
                if try TrailEntry(reading: bytes).kind == .send {
                    var read = try SendEntry.read(bytes)
                    for position in read.entry.deliveries.indices {
                        read.entry.deliveries[position].facts.platform = nil
                    }
                    bytes = try read.entry.bytes(index: read.index, time: read.time)
                }
                for difference in try fold.differences(in: bytes, policies: policies) {
                    found.insert(difference.pointer.text.split(separator: "/").last.map(String.init) ?? "")
                }
                try fold.apply(bytes, policies: policies)
            }
            return found
        }
        #expect(try differences(FourteenGates.self) == [])
        #expect(try differences(BuiltGates.self) == ["platform"])
    }

    @Test func `an auditor with an older build is told to take a newer one`() async throws {
        let entries = try newer()
        let path = try publish(old + entries)
        let verify = try await CommandLineRun("audit", "verify", path, "--key", "\(path)/trail.pub")
        #expect(verify.status == 1, "\(verify.output)\(verify.errors)")
        #expect(verify.output.contains("consistent: \(old.count + entries.count) entries"))
        #expect(!verify.output.contains("only the members of each kind"))
        #expect(
            verify.errors.contains(
                "entry \(old.count + 1) cannot be read: a newer sendgate wrote it, with 14"))
        #expect(verify.errors.contains("use the version that the `start` entry before it names"))
        #expect(!verify.errors.contains("damaged"))
        let replay = try await CommandLineRun("audit", "replay", path, "--key", "\(path)/trail.pub")
        #expect(replay.status == 3)
        #expect(
            replay.output.contains(
                "entry \(old.count + 1): not replayable: a newer sendgate wrote it, with 14 gates"),
            "\(replay.output)")
        #expect(replay.output.contains("0 different"))
    }

    @Test(arguments: ["kind", "member", "format"])
    func `what a later version added to the trail is named, and no command works as if it were not there`(
        what: String
    )
        async throws
    {
        var entries = old + [try start(of: "99.0.0", at: old.count)]
        let index = entries.count
        switch what {
        case "kind":
            entries.append(
                try TrailEntry(
                    kind: EntryKind("later"), index: UInt64(index), time: lastTime,
                    members: ["subject": "00000000000000000000000000000001"]
                ).encoded().bytes)
        case "member":
            var members = try TrailEntry(reading: try #require(entries.last)).members
            members["later"] = 1
            entries.append(
                try TrailEntry(kind: .start, index: UInt64(index), time: lastTime, members: members)
                    .encoded().bytes)
        default:
            let text = String(decoding: try start(of: "99.0.0", at: index), as: UTF8.self)
            entries.append(Array(text.replacing(#""v":1"#, with: #""v":2"#).utf8))
        }
        let path = try publish(entries)
        for command in [
            ["audit", "verify"], ["audit", "replay"], ["audit", "replay", "--from-genesis"], ["report"],
        ].prefix(what == "kind" ? 4 : what == "member" ? 2 : 1) {
            let run = try await CommandLineRun(command + [path, "--key", "\(path)/trail.pub"])
            // A member more is damage for who looks at members, with the way to find out; for others it changes nothing.
            if what == "member" {
                let looks = command == ["audit", "verify"]
                #expect(run.status == (looks ? 3 : 0), "\(command): \(run)")
                let hint =
                    "says that sendgate 99.0.0 wrote it, and this is \(Sendgate.version): verify with that version first"
                #expect(run.errors.contains(hint) == looks)
                continue
            }
            #expect(run.status == 1, "\(command): \(run)")
            #expect(
                run.errors.contains("entry \(index) cannot be read: a newer sendgate wrote it"),
                "\(command): \(run)")
            #expect(run.errors.contains("use the version that the `start` entry before it names"))
        }
    }

    @Test func `a reason that an older build does not know does not hide that the entry is newer`() throws {
        let text = String(decoding: try #require(try newer().last), as: UTF8.self)
        let bytes = Array(text.replacing("\"platform\":", with: "\"platform_of_later\":").utf8)
        #expect(bytes != Array(text.utf8))
        #expect(throws: EntryError.newer(gateCount: 14)) { try SendEntry.read(bytes) }
    }

    @Test func `a decision that leaves a gate out stands beside one of the same run that has it`() throws {
        var entries = old + (try newer())
        // The operator leaves the gate out of one send, without a start of another build.
        let lie = try #require(old.last { try TrailEntry(reading: $0).kind == .send })
        let send = try SendEntry.read(lie).entry
        entries.append(try send.bytes(index: UInt64(entries.count), time: try lastTime))
        let breaks = try breaks(in: entries)
        #expect(breaks.map(\.gateCount) == [13])
        #expect(breaks.first?.earlierGateCount == 14)
    }

    private func breaks(in entries: [[UInt8]]) throws -> [GateRuns.Break] {
        var runs = GateRuns()
        return try entries.compactMap { runs.follow(try TrailEntry(reading: $0)) }
    }

    @Test(arguments: [("0.2.0", [13]), ("0.1.0", []), ("0.3.0", [])])
    func `a start does not let the version that goes on leave a gate out`(version: String, found: [Int])
        throws
    {
        var entries = old + (try newer())
        let lie = try #require(old.last { try TrailEntry(reading: $0).kind == .send })
        entries.append(try start(of: version, at: entries.count))
        entries.append(
            try SendEntry.read(lie).entry.bytes(index: UInt64(entries.count), time: try lastTime))
        #expect(try breaks(in: entries).map(\.gateCount) == found)
    }

    /// Each a change of a newer entry's text, and whether an added gate can bring it.
    @Test(arguments: [
        (#""facts":{"account_preference""#, #""facts":{"aaa":"later","account_preference""#, true),
        (#""v":1}"#, #""v":1,"zzz":1}"#, false),
        (#""platform":"ios""#, #""platform":"phone""#, false),
        (#""trace":["pass""#, #""trace":["\#(String(repeating: "x", count: 65))""#, false),
        (#""decision":{"#, #""decision":{"aaa":"any text","#, false),
    ])
    func `an entry of a newer build may have more gates and facts than this one knows, and nothing else`(
        original: String, changed: String, isOfAddedGate: Bool
    ) async throws {
        var entries = old + (try newer())
        let place = try #require(
            try entries.lastIndex { bytes in
                let text = String(decoding: bytes, as: UTF8.self)
                return try TrailEntry(reading: bytes).newer != nil && text.contains(original)
            })
        let text = String(decoding: entries[place], as: UTF8.self)
        entries[place] = Array(text.replacing(original, with: changed).utf8)
        let path = try publish(entries)
        let verify = try await CommandLineRun("audit", "verify", path, "--key", "\(path)/trail.pub")
        let isDamage =
            verify.errors.contains("entry \(place) in `")
            && verify.errors.contains("has what its kind may not have")
        #expect(isDamage == !isOfAddedGate, "\(verify.errors)")
        #expect(verify.status == (isOfAddedGate ? 1 : 3))
    }
}
