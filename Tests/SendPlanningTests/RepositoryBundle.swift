import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateRecords
import GateTestKit
import GateVocabulary
import SealedFormat
import SendPlanning

/// The repository's own bundle, and others that differ from it in one place.
enum RepositoryBundle {
    static let documents = try! Repository.pages()

    static let policy = try! Repository.policy()

    static func compiled(_ documents: [String: PolicyNode]) -> CompiledPolicy {
        CompiledPolicy(try! PolicyBundle.read(documents: documents).get())
    }

    /// The bundle with one value changed.
    static func policy(_ file: String, _ path: [String], _ value: JSONValue?) -> CompiledPolicy {
        var documents = documents
        documents[file] = PolicyNode(json: changed(documents[file]!.json, path[...], value))
        return compiled(documents)
    }

    private static func changed(_ json: JSONValue, _ path: ArraySlice<String>, _ value: JSONValue?)
        -> JSONValue
    {
        guard case .object(var object) = json, let step = path.first else {
            preconditionFailure("no such place")
        }
        if path.count == 1 {
            object[step] = value
        } else {
            object[step] = changed(object[step] ?? [:], path.dropFirst(), value)
        }
        return .object(object)
    }

    static let digests: @Sendable (PolicyDigest) -> CompiledPolicy? = { $0 == policy.digest ? policy : nil }

    /// Every case of the bundle: requests and facts with all the variety its authors could think of.
    static let cases: [PolicyCase] = policy.bundle.cases
}

/// Params that would be found again anywhere: no word of them occurs in anything of ours.
enum Canary {
    static let words = ["Zyxwvut", "8a8a8a8a", "77318", "7_731_8", "kanari", "QQX"]

    static func params(of type: NotificationType) -> JSONObject {
        JSONObject(
            type.params.map { name, schema in
                let value: JSONValue =
                    switch schema.kind {
                    case .uuid: "8a8a8a8a-8a8a-4a8a-8a8a-8a8a8a8a8a8a"
                    case .money: ["currency": "NOK", "minor": 7_731_877_318]
                    case .totals: [["currency": "NOK", "minor": 7_731_877_318]]
                    case .text(let most, _): .string(String("Zyxwvut kanari".prefix(most)))
                    case .integer(let least, let most): .integer(max(least, min(most, 77_318)))
                    case .timestamp: "2026-07-31T08:07:31Z"
                    case .country: "AQ"
                    case .code: "773187"
                    case .url(let places): .string(places[0].text)
                    case .oneOf(let values): .string(values[0])
                    }
                return (name, value)
            })
    }

    /// Params as long as ordinary ones are: a full name, a merchant with its branch, two sentences where a text is long.
    static func longestOrdinaryParams(of type: NotificationType) -> JSONObject {
        JSONObject(
            params(of: type).map { name, value in
                switch type.params[name]!.kind {
                case .money: (name, ["currency": "NOK", "minor": -999_999_999_999])
                case .totals:
                    (name, .array(["NOK", "EUR", "USD"].map { ["currency": $0, "minor": 999_999_999] }))
                case .text(let most, _):
                    (
                        name,
                        .string(
                            String(repeating: "Zyxwvut kanari ", count: 20).prefix(
                                most > 128 ? 160 : min(most, 60)) + ".")
                    )
                case .url(let places): (name, .string(places[0].text + "/AB123456789NO"))
                case .oneOf(let values): (name, .string(values.max { $0.utf8.count < $1.utf8.count }!))
                default: (name, value)
                }
            })
    }

    /// Whatever would tell what a notification is about, for one type.
    static func telling(_ type: NotificationType, _ params: JSONObject, _ material: SendMaterial) -> [String]
    {
        var words = words + [type.id.text, "kanari-link", "kanari-key"]
        for (_, value) in params {
            if let text = value.stringValue, text.utf8.count > 3 { words.append(text) }
        }
        for text in [
            type.deepLink?.text, type.apnsCategory?.text, type.androidChannel, material.deepLink,
        ] {
            // A name as short as `default` is in every payload.
            if let text, text != "default", text.utf8.count > 3 { words.append("\"\(text)\"") }
        }
        return words
    }
}

enum Sample {
    static let now = Instant(rfc3339: "2026-11-10T12:00:00Z")!
    static let send = SendID(uuidText: "0b0f7f3a-6a3e-4b0e-9d5e-111111111111")!
    static let message = MessageID(uuidText: "5c1e9f64-2f0e-4a53-8b7a-222222222222")!
    static let subject = SubjectID(high: 1, low: 2)
    static let peer = SendEntry.PeerEvidence(userID: 1001, groupID: 1002, processID: 4711)

    static func tag(_ number: UInt64) -> Tag { Tag(high: 0xAAAA, low: number) }

    /// Everything known, everything in favour.
    static var facts: Facts {
        var facts = Facts.ready(at: now)
        facts.expiry = now.advanced(bySeconds: 3600)
        let region = RegionObservation(
            code: RegionCode("NO")!, source: .kyc, observedAt: now.advanced(bySeconds: -86_400))
        facts.accountRegion = region
        facts.deviceRegions = [region]
        facts.consent = ConsentFact(state: .given, method: .writtenConsent)
        facts.sizes = nil
        return facts
    }

    static func caller(of type: NotificationType) -> CallerName {
        let policy = RepositoryBundle.policy
        let names = policy.bundle.callers.keys.sorted()
        return names.first {
            let request = AttestedRequest(caller: $0, type: type.id, channel: .push, critical: false)
            return policy.rule(for: request).flags.contains(.typeGranted)
        } ?? names[0]
    }

    static func material(
        _ type: NotificationType, on channel: Channel, critical: Bool = false, params: JSONObject? = nil,
        locale: String? = nil
    ) -> SendMaterial {
        SendMaterial(
            send: send,
            request: AttestedRequest(
                caller: caller(of: type), type: type.id, channel: channel, critical: critical),
            params: params ?? Canary.params(of: type), deepLink: "drop://kanari-link", locale: locale,
            collapse: tag(99), of: nil, ttlSeconds: 3600, sentAt: now)
    }

    static func device(_ platform: Platform) -> Destination {
        var device = DeviceRecord.blank
        (device.tag, device.id) = (tag(1), DestinationID("d_1"))
        (device.platform, device.app) = (platform, "no.getdrop.app")
        return .device([device], 0)
    }

    static func address(_ channel: Channel) -> Destination {
        var address = AddressRecord.blank
        (address.tag, address.channel) = (tag(channel == .sms ? 2 : 3), channel)
        return .address([address], 0)
    }

    static func key(_ suite: SealingSuite) -> SealingKey {
        SealingKey(id: KeyID(high: 7, low: 8), suite: suite, publicKey: [])
    }

    static func entry(
        _ deliveries: [SendEntry.DeliveryRecord], request: AttestedRequest, subject: SubjectID? = subject
    )
        -> SendEntry
    {
        let isRegistered = RepositoryBundle.policy.type(request.type) != nil
        return SendEntry(
            send: send, subject: subject, caller: request.caller, peer: peer,
            request: .init(
                type: isRegistered ? request.type : nil, typeTag: isRegistered ? nil : tag(8),
                typeByteCount: isRegistered ? nil : request.type.text.utf8.count, channel: request.channel,
                critical: request.critical, idTag: tag(7),
                ttlSeconds: 3600, locale: "nb"),
            paramsVerdict: [], deliveries: deliveries, policy: RepositoryBundle.policy.digest, tzdata: "2026b"
        )
    }

    /// An entry of one delivery, decided by the bundle.
    static func entry(_ example: PolicyCase) -> SendEntry {
        let decision = decide(example.request, given: example.facts, under: RepositoryBundle.policy)
        return entry(
            [
                .init(
                    destination: example.facts.destination == .active ? tag(1) : nil,
                    message: decision.outcome.isPromise ? message : nil, facts: example.facts,
                    decision: decision,
                    byteCount: example.facts.sizes?[decision.form])
            ], request: example.request)
    }
}

extension [UInt8] {
    var text: String { String(decoding: self, as: UTF8.self) }

    /// The same bytes with one text replaced.
    func replacing(_ old: String, with new: String) -> [UInt8] { Array(text.replacing(old, with: new).utf8) }
}
