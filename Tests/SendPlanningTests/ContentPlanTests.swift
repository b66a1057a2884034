import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateVocabulary
import PayloadComposition
import SealedFormat
import SendPlanning
import Testing

/// Every type of the bundle, composed for every kind of destination.
@Suite struct ContentPlanTests {
    struct Situation: Sendable, CustomTestStringConvertible {
        var name: String
        var channel: Channel
        var destination: Destination
        var suite: SealingSuite?
        var key: DeviceKeyFact?
        var platform: Platform?
        var testDescription: String { name }
    }

    static let situations: [Situation] = [
        Situation(
            name: "ios, P-256", channel: .push, destination: Sample.device(.ios), suite: .p256, key: .usable,
            platform: .ios),
        Situation(
            name: "ios, X25519", channel: .push, destination: Sample.device(.ios), suite: .x25519,
            key: .usable, platform: .ios),
        Situation(
            name: "ios, no key", channel: .push, destination: Sample.device(.ios),
            key: DeviceKeyFact.none, platform: .ios),
        Situation(
            name: "android, P-256", channel: .push, destination: Sample.device(.android), suite: .p256,
            key: .usable, platform: .android),
        Situation(
            name: "android, X25519", channel: .push, destination: Sample.device(.android), suite: .x25519,
            key: .usable, platform: .android),
        Situation(
            name: "android, revoked key", channel: .push, destination: Sample.device(.android),
            key: .revoked, platform: .android),
        Situation(name: "sms", channel: .sms, destination: Sample.address(.sms)),
        Situation(name: "email", channel: .email, destination: Sample.address(.email)),
    ]

    /// One type in one situation, planned and decided.
    static func plan(
        _ type: NotificationType, _ situation: Situation, critical: Bool = false,
        privacy: PrivacyLevel? = .full,
        locale: String = "nb", params: JSONObject? = nil,
        under policy: CompiledPolicy = RepositoryBundle.policy,
        adjusting adjust: (inout SendMaterial, inout Facts) -> Void = { _, _ in }
    ) throws -> (plan: ContentPlan, decision: Decision, facts: Facts, material: SendMaterial) {
        var material = Sample.material(
            type, on: situation.channel, critical: critical, params: params, locale: locale)
        var facts = Sample.facts
        facts.privacy = privacy
        facts.deviceKey = situation.key
        facts.platform = situation.platform
        adjust(&material, &facts)
        let content = content(of: material, utcOffsetSeconds: 3600, under: policy)
        let plan = ContentPlan(
            material, saying: content, to: situation.destination, sealedTo: situation.suite.map(Sample.key),
            as: Sample.message,
            ownCollapse: Sample.tag(98),
            unsubscribeLink: { _ in CountedText("https://drop.example/u/opaque") }, facts: &facts,
            under: policy.terms(of: material.request), of: policy)
        return (plan, decide(material.request, given: facts, under: policy), facts, material)
    }

    /// What a send says whose params fit its type.
    static func content(
        of material: SendMaterial, recipientLocale: String? = nil, utcOffsetSeconds: Int? = nil,
        under policy: CompiledPolicy = RepositoryBundle.policy
    ) -> SendContent? {
        ParamsCheck(material.params, of: material.request.type, under: policy).params.flatMap {
            params in
            SendContent(
                material, saying: params, under: policy.terms(of: material.request),
                recipientLocale: recipientLocale, utcOffsetSeconds: utcOffsetSeconds, of: policy)
        }
    }

    /// The body with an envelope or a mark of the right length in it.
    static func filled(_ delivery: DeliveryPlan) throws -> [UInt8] {
        switch delivery.order {
        case .seal(let order): try delivery.filled(with: try envelope(for: order))
        case .sign: try delivery.filled(with: [UInt8](repeating: 65, count: OriginMark.characterCount))
        case nil: try delivery.filled(with: nil)
        }
    }

    static func expiry(of order: OriginOrder) -> UInt64 {
        switch order {
        case .seal(let order): order.expiresAt
        case .sign(let order): order.expiresAt
        }
    }

    static func envelope(for order: SealOrder) throws -> [UInt8] {
        let bucket = try #require(SealedLimits.bucket(contentByteCount: order.content.count))
        return try SealedEnvelope(
            suite: order.key.suite, keyID: order.key.id.bytes, messageID: order.message.bytes,
            expiresAt: order.expiresAt,
            sealed: [UInt8](
                repeating: 0xA5,
                count: order.key.suite.publicKeyByteCount + bucket + SealedLimits.tagByteCount)
        ).bytes
    }

    @Test(arguments: situations)
    func `what is forwarded is what was decided, byte for byte as long as its fact`(
        _ situation: Situation
    ) throws {
        var forwarded = 0
        for type in RepositoryBundle.policy.types {
            for locale in ["nb", "en", "bs"] {
                for privacy in PrivacyLevel.allCases.map(Optional.some) + [nil] {
                    let (plan, decision, facts, _) = try Self.plan(
                        type, situation, privacy: privacy, locale: locale)
                    guard let delivery = plan.delivery(for: decision) else { continue }
                    forwarded += 1
                    let size = try #require(facts.sizes?[decision.form])
                    #expect(delivery.byteCount == size)
                    let body = try Self.filled(delivery)
                    #expect(CanonicalJSON.isCanonical(body))
                    if situation.channel != .sms { #expect(body.count == size, "\(type.id) \(locale)") }
                }
            }
        }
        #expect(forwarded > 20, "only \(forwarded) were forwarded")
    }

    @Test(arguments: situations) func `outside the seal, and in a generic text, nothing tells`(
        _ situation: Situation
    ) throws {
        var seen: Set<BodyForm> = []
        for type in RepositoryBundle.policy.types {
            let (plan, decision, _, material) = try Self.plan(type, situation)
            guard let delivery = plan.delivery(for: decision) else { continue }
            seen.insert(decision.form)
            guard decision.form != .full else { continue }
            let (before, after) = try delivery.body.parts()
            let outside = (Array(before + after) + delivery.headers).text
            for word in Canary.telling(type, material.params, material) {
                #expect(!outside.contains(word), "`\(word)` of \(type.id) is outside")
            }
        }
        if situation.key == .usable { #expect(seen.contains(.sealed)) }
        if situation.key == DeviceKeyFact.none || situation.channel == .email {
            #expect(seen.contains(.generic))
        }
    }

    @Test func `inside the seal everything is there`() throws {
        let type = try #require(RepositoryBundle.policy.type(TypeID("transaction.remittance_sent")))
        let (plan, decision, _, material) = try Self.plan(type, Self.situations[0])
        let delivery = try #require(plan.delivery(for: decision))
        let order = try #require(delivery.order?.seal)
        #expect(order.device == DestinationID("d_1"))
        #expect(order.app == "no.getdrop.app")
        #expect(order.purpose == .notification)
        #expect(order.message == Sample.message)
        // Outside a class of the tier, inside the exact time.
        #expect(order.expiresAt == UInt64(Sample.now.seconds) + 172_800)
        #expect(delivery.key == KeyID(high: 7, low: 8))
        let inside = try CanonicalJSON.readCanonical(order.content)
        #expect(inside["type"] == "transaction.remittance_sent")
        #expect(inside["expires_at"] == .integer(material.expiresAt.milliseconds))
        #expect(inside["params"] == .object(material.params))
        #expect(inside["deep_link"] == "drop://kanari-link")
        #expect(inside["body"] == "Du sendte 77\u{A0}318\u{A0}773,18\u{A0}kr til Zyxwvut kanari.")
        #expect(inside["category"] == "transactional")
        #expect(inside["thread"] == "transaction")
    }

    /// What an outsider sees of one message of a type, but for what is random.
    private static func outside(
        _ type: NotificationType, _ situation: Situation, locale: String, params: JSONObject, life: Int64,
        collapse: GateVocabulary.Tag?
    ) throws -> String? {
        let (plan, decision, _, _) = try plan(type, situation, locale: locale, params: params) {
            material, facts in
            material.expiresAt = Sample.now.advanced(bySeconds: life)
            material.collapse = collapse
            facts.expiry = material.expiresAt
        }
        guard let delivery = plan.delivery(for: decision), decision.form != .full else { return nil }
        let (before, after) = try delivery.body.parts()
        var seen = [
            delivery.headers.text, Array(before).text, Array(after).text,
            "\(delivery.order.map(Self.expiry) ?? 0)",
        ].joined(separator: "\n")
        if let order = delivery.order?.seal {
            seen += "\nbucket \(SealedLimits.bucket(contentByteCount: order.content.count) ?? 0)"
        }
        // A tag is random to its reader; that there is one is not.
        return [98, 99].reduce(seen) { $0.replacing(Sample.tag($1).hexadecimal, with: "TAG") }
    }

    @Test(arguments: situations.filter { $0.channel == .push })
    func `outside, all sealed types of one platform and tier are one class`(_ situation: Situation) throws {
        var classes: [String: Set<String>] = [:]
        var types: [String: Set<TypeID>] = [:]
        for type in RepositoryBundle.policy.types where type.body.push == .sealed && type.isEnabled {
            for locale in RepositoryBundle.policy.bundle.messages.keys {
                for params in [Canary.params(of: type), Canary.longestOrdinaryParams(of: type)] {
                    // The type's own life and what a send may make of it, with a collapse key and without.
                    for life in [type.ttlSeconds, 60, type.ttlSeconds / 2] {
                        for collapse in [nil, Sample.tag(99)] {
                            guard
                                let seen = try Self.outside(
                                    type, situation, locale: locale, params: params, life: life,
                                    collapse: collapse)
                            else { continue }
                            classes["\(type.tier) \(locale)", default: []].insert(seen)
                            types["\(type.tier) \(locale)", default: []].insert(type.id)
                        }
                    }
                }
            }
        }
        #expect(types.values.reduce(0) { $0 + $1.count } > 80, "\(types)")
        for (tier, seen) in classes {
            #expect(types[tier]!.count > 1)
            #expect(
                seen.count == 1, "\(tier) is \(seen.count) classes:\n\(seen.joined(separator: "\n---\n"))")
        }
        #expect(Set(classes.values.map { $0.first! }).count == classes.count, "two tiers look alike")
    }

    /// The bundle with a sealed type whose text may be longer than any of the repository's is.
    private static let wide = RepositoryBundle.policy(
        "types/transaction.remittance_sent.yaml", ["params", "recipient_name"], ["text": ["bytes_max": 1024]])

    @Test func `a content too long for the common bucket takes the next, and none takes a smaller one`()
        throws
    {
        let type = try #require(Self.wide.type(TypeID("transaction.remittance_sent")))
        var met: Set<Int> = []
        for count in 1...100 {
            let params = JSONObject(
                Canary.params(of: type).map {
                    (
                        $0.key,
                        $0.key == "recipient_name"
                            ? .string(String(repeating: "x", count: 10 * count)) : $0.value
                    )
                })
            for situation in Self.situations where situation.key == .usable {
                let (plan, decision, _, _) = try Self.plan(type, situation, params: params, under: Self.wide)
                guard let order = plan.delivery(for: decision)?.order?.seal else { continue }
                let bucket = try #require(SealedLimits.bucket(contentByteCount: order.content.count))
                met.insert(bucket)
                let bare = try CanonicalJSON.readCanonical(order.content)["padding"] == nil
                #expect(bucket == 1024 || bucket == 2048 && bare)
            }
        }
        #expect(met == [1024, 2048])
    }

    @Test func `a message that waited is told outside as if it had just come`() throws {
        let type = try #require(RepositoryBundle.policy.type(TypeID("transaction.remittance_sent")))
        let later = Sample.now.advanced(bySeconds: 1_800)
        for situation in Self.situations where situation.channel == .push {
            let (plan, decision, _, _) = try Self.plan(type, situation) { _, facts in facts.now = later }
            let delivery = try #require(plan.delivery(for: decision))
            #expect((delivery.order?.seal != nil) == (situation.key == .usable))
            #expect(delivery.order.map(Self.expiry) == UInt64(later.seconds) + 172_800)
            if situation.platform == .ios {
                let headers = try CanonicalJSON.readCanonical(delivery.headers)
                #expect(headers["apns-expiration"] == .string(String(later.seconds + 172_800)))
            }
        }
    }

    @Test func `a tier that is silent is silent on an iPhone, whatever its type`() throws {
        var forms: [BodyForm: Int] = [:]
        for type in RepositoryBundle.policy.types where type.isEnabled {
            for situation in Self.situations where situation.platform == .ios {
                let (plan, decision, _, _) = try Self.plan(type, situation)
                guard let delivery = plan.delivery(for: decision) else { continue }
                forms[decision.form, default: 0] += 1
                let body = try CanonicalJSON.readCanonical(
                    try Self.filled(delivery))
                let sound = body["aps"]?["sound"]
                if decision.form == .full {
                    #expect(
                        sound?.stringValue == (type.interruption == .passive ? nil : type.sound), "\(type.id)"
                    )
                } else {
                    #expect((sound != nil) == (type.interruption == .timeSensitive), "\(type.id)")
                }
            }
        }
        for form in [BodyForm.full, .generic, .sealed] { #expect(forms[form] ?? 0 > 5, "\(forms)") }
    }

    @Test func `a text message, a subject and a generic push say who writes`() throws {
        var channels: [Channel: Int] = [:]
        for type in RepositoryBundle.policy.types where type.isEnabled {
            for situation in Self.situations {
                let (plan, decision, _, _) = try Self.plan(type, situation)
                guard let delivery = plan.delivery(for: decision) else { continue }
                let body = try CanonicalJSON.readCanonical(
                    try Self.filled(delivery))
                let message = body["message"]
                let shown: JSONValue? =
                    switch situation.channel {
                    case .sms: body["text"]
                    case .email: body["subject"]
                    case .push where decision.form == .full: nil
                    case .push:
                        body["aps"]?["alert"]?["title"] ?? message?["data"]?["title"]
                            ?? message?["android"]?["notification"]?["title"]
                    }
                guard let text = shown?.stringValue else {
                    #expect(decision.form == .full && situation.channel == .push)
                    continue
                }
                channels[situation.channel, default: 0] += 1
                #expect(
                    text.hasPrefix("\(RepositoryBundle.policy.bundle.brand): "),
                    "\(type.id) by \(situation.name): \(text)")
            }
        }
        for channel in Channel.allCases { #expect(channels[channel] ?? 0 > 5, "\(channels)") }
    }

    @Test(arguments: ["en", "nb", "bs", "sq"])
    func `an e-mail with a way out says so before the link, and who sent it`(_ locale: String) throws {
        let bundle = RepositoryBundle.policy.bundle
        let words = try #require(bundle.messages[locale]?.unsubscribeWords)
        let sender = try #require(bundle.sender)
        let mailbox = try #require(Self.situations.first { $0.channel == .email })
        var count = 0
        for type in RepositoryBundle.policy.types where type.isEnabled && type.body.email != .never {
            let (plan, decision, _, _) = try Self.plan(type, mailbox, locale: locale)
            guard let delivery = plan.delivery(for: decision) else { continue }
            let text = try #require(
                try CanonicalJSON.readCanonical(try Self.filled(delivery))["text"]?.stringValue)
            guard RepositoryBundle.policy.hasUnsubscribeLink(type) else {
                #expect(!text.contains(words) && !text.contains(sender.postalAddress), "\(type.id)")
                continue
            }
            count += 1
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).suffix(5)
            let link = try #require(lines.dropFirst(2).first)
            #expect(
                Array(lines) == ["", Substring(words), link, "", "\(sender.name), \(sender.postalAddress)"],
                "\(type.id): \(text)")
            #expect(link.hasPrefix("https://"), "\(type.id): \(text)")
        }
        #expect(count > 3)
        let others = bundle.messages.values.filter { $0.locale != locale }
        #expect(others.allSatisfy { $0.unsubscribeWords != words })
    }

    @Test func `a push to Android that takes the place of another has the tag that Android replaces by`()
        throws
    {
        let android = Self.situations.filter { $0.platform == .android }
        var count = 0
        for type in RepositoryBundle.policy.types where type.isEnabled {
            for situation in android {
                let (plan, decision, _, material) = try Self.plan(type, situation)
                guard let delivery = plan.delivery(for: decision), decision.form != .sealed else { continue }
                let body = try CanonicalJSON.readCanonical(try Self.filled(delivery))
                let message = body["message"]?["android"]
                let tag = message?["notification"]?["tag"]?.stringValue
                guard decision.form == .full else {
                    #expect(tag != nil, "\(type.id)")
                    continue
                }
                #expect(tag == message?["collapseKey"]?.stringValue, "\(type.id)")
                #expect(tag == material.collapse?.hexadecimal, "\(type.id)")
                if tag != nil { count += 1 }
            }
        }
        #expect(count > 0)
    }

    @Test func `no type asks for a param that no text says and no payload carries`() {
        let bundle = RepositoryBundle.policy.bundle
        // A sealed push carries every param, a full one references.
        let types = bundle.types.values.filter { $0.body.push != .sealed }
        #expect(types.count > 10)
        for type in types {
            let said = Set(bundle.messages.values.flatMap { $0.texts[type.messageKey]?.params ?? [] })
            for (name, schema) in type.params where !said.contains(name) && name != type.dedupeBy {
                let isCarried = schema.kind == .totals || schema.kind == .uuid && type.body.push == .full
                #expect(isCarried, "{\(name)} of \(type.id) goes nowhere")
            }
        }
    }

    @Test func `S2's number travels beside the type, in the seal when there is one`() throws {
        let numbered = RepositoryBundle.policy.types.filter { $0.alertType != nil && $0.isEnabled }
        #expect(!numbered.isEmpty)
        var carried: [BodyForm: Int] = [:]
        for type in numbered {
            for situation in Self.situations where situation.channel == .push {
                let (plan, decision, _, _) = try Self.plan(type, situation)
                guard let delivery = plan.delivery(for: decision) else { continue }
                carried[decision.form, default: 0] += 1
                let number = Int64(type.alertType!)
                switch decision.form {
                case .sealed:
                    #expect(
                        try CanonicalJSON.readCanonical(delivery.order!.seal!.content)["number"]
                            == .integer(number)
                    )
                case .full:
                    let body = try CanonicalJSON.readCanonical(try Self.filled(delivery))
                    let found = body["number"] ?? body["message"]?["data"]?["number"]
                    #expect(found == .integer(number) || found == .string(String(number)))
                case .generic, .never: break
                }
            }
        }
        #expect(carried[.sealed] ?? 0 > 0, "\(carried)")
    }

    @Test func `every marketing and social message lets its reader mute it`() throws {
        var count = 0
        for type in RepositoryBundle.policy.types {
            let demanded = RepositoryBundle.policy.category(type.category).hasUnsubscribeLink
            for situation in Self.situations {
                let (plan, decision, _, _) = try Self.plan(type, situation)
                guard let delivery = plan.delivery(for: decision) else { continue }
                let everything =
                    (try Self.filled(delivery)).text
                    + (delivery.order?.seal?.content.text ?? "")
                #expect(everything.contains("https://drop.example/u/opaque") == demanded, "\(type.id)")
                if demanded { count += 1 }
            }
        }
        #expect(count > 0)
    }

    @Test func `a critical alert is composed as critical, or as less where the device allows less`() throws {
        let type = try #require(RepositoryBundle.policy.type(TypeID("suspicious_login")))
        let caller = try #require(
            RepositoryBundle.policy.bundle.critical.first { $0.type == type.id }?.callers.first)
        for (allowed, expected) in [(true, Interruption.critical), (false, .timeSensitive)] {
            var material = Sample.material(type, on: .push, critical: true)
            material.request.caller = caller
            var facts = Sample.facts
            facts.criticalAlerts = allowed
            let content = Self.content(of: material)
            let plan = ContentPlan(
                material, saying: content, to: Sample.device(.ios), sealedTo: Sample.key(.p256),
                as: Sample.message,
                ownCollapse: Sample.tag(98),
                unsubscribeLink: { _ in nil },
                facts: &facts, under: RepositoryBundle.policy.terms(of: material.request),
                of: RepositoryBundle.policy)
            let decision = decide(material.request, given: facts, under: RepositoryBundle.policy)
            let delivery = try #require(plan.delivery(for: decision))
            #expect(decision.interruption == expected)
            let aps = try CanonicalJSON.readCanonical(
                try Self.filled(delivery))["aps"]
            #expect(aps?["interruption-level"]?.stringValue == (allowed ? "critical" : "time-sensitive"))
            #expect((aps?["sound"]?.objectValue != nil) == allowed)
        }
    }

    @Test func `what cannot be composed has no size, and is refused for its own reason`() throws {
        let type = try #require(RepositoryBundle.policy.type(TypeID("transaction.remittance_sent")))
        let material = Sample.material(type, on: .push)
        var facts = Sample.facts
        facts.params = .invalid
        facts.sizes = PayloadSizes(sealed: 1, generic: 1, full: 1)
        let plan = ContentPlan(
            material, saying: nil, to: Sample.device(.ios), sealedTo: Sample.key(.p256), as: Sample.message,
            ownCollapse: Sample.tag(98), unsubscribeLink: { _ in nil },
            facts: &facts, under: RepositoryBundle.policy.terms(of: material.request),
            of: RepositoryBundle.policy)
        #expect(facts.sizes == nil)
        let decision = decide(material.request, given: facts, under: RepositoryBundle.policy)
        #expect(decision.reason == .invalidParams)
        #expect(plan.delivery(for: decision) == nil)
        // An amount in a currency without minor units is no param, so no text is composed of it.
        var params = material.params
        params["amount"] = ["currency": "XAU", "minor": 1]
        #expect(ParamsCheck(params, of: type.id, under: RepositoryBundle.policy).params == nil)
    }

    @Test func `a locked screen shows the public text unless its reader asked for all, and an app has both`()
        throws
    {
        let policy = RepositoryBundle.policy
        let english = try #require(policy.texts(in: "en"))
        var counts = (open: 0, sealed: 0)
        for type in policy.types where type.isEnabled {
            let request = Sample.material(type, on: .push).request
            let texts = english.texts(under: policy.terms(of: request))
            guard case .plain(let template) = texts?.publicBody, case .text(let text) = template.parts.first,
                template.parts.count == 1, texts?.body != texts?.publicBody
            else { continue }
            func content(_ privacy: PrivacyLevel?) throws -> String? {
                let (plan, decision, _, _) = try Self.plan(
                    type, Self.situations[0], privacy: privacy, locale: "en")
                guard let delivery = plan.delivery(for: decision) else { return nil }
                if case .seal(let order) = delivery.order {
                    return String(decoding: order.content, as: UTF8.self)
                }
                return String(decoding: try Self.filled(delivery), as: UTF8.self)
            }
            for privacy in [PrivacyLevel.full, .generic] {
                guard let content = try content(privacy) else { continue }
                if type.body.push == .sealed {
                    #expect(content.contains(#""public_body":"\#(text)""#), "\(type.id) \(privacy)")
                    counts.sealed += 1
                } else if type.body.push == .full {
                    // Some go in the generic form then, which says less than the public text.
                    #expect(!content.contains(text) || privacy != .full, "\(type.id)")
                    if content.contains(text) { counts.open += 1 }
                }
            }
        }
        #expect(counts.open > 0 && counts.sealed > 0, "\(counts)")
    }

    @Test func `only what will travel is composed, and all of it where that is not known`() throws {
        let type = try #require(RepositoryBundle.policy.type(TypeID("transaction.remittance_sent")))
        let sealed = try Self.plan(type, Self.situations[0]).facts.sizes
        #expect(sealed?.sealed != nil && sealed?.generic == nil)
        let withoutKey = try Self.plan(type, Self.situations[2]).facts.sizes
        #expect(withoutKey?.generic != nil && withoutKey?.sealed == nil)
        let open = try #require(RepositoryBundle.policy.types.first { $0.body.push == .full && $0.isEnabled })
        let unknown = try Self.plan(open, Self.situations[0], privacy: nil).facts.sizes
        #expect(unknown?.full != nil && unknown?.generic != nil)
        let known = try Self.plan(open, Self.situations[0], privacy: .full).facts.sizes
        #expect(known?.full != nil && known?.generic == nil)
    }

    @Test func `content too large for any bucket is too large for the channel`() throws {
        let type = try #require(Self.wide.type(TypeID("transaction.remittance_sent")))
        var params = Canary.params(of: type)
        params["recipient_name"] = .string(String(repeating: "x", count: 1000))
        let (plan, decision, facts, _) = try Self.plan(
            type, Self.situations[0], params: params, under: Self.wide)
        #expect(try #require(facts.sizes?.sealed) > 4096)
        #expect(decision.reason == .payloadTooLarge)
        #expect(plan.delivery(for: decision) == nil)
    }

    @Test func `a device without a key has a known size, so that the key is the one thing missing`() throws {
        let types = RepositoryBundle.policy.types.filter { $0.body.push == .sealed && $0.isEnabled }
        #expect(types.count > 20)
        for type in types {
            let (_, decision, _, _) = try Self.plan(type, Self.situations[2])
            #expect(decision.trace[.size] == .pass)
            #expect(
                decision.reason == .genericOnly || decision.reason == .noDeviceKey
                    || decision.reason.outcome != .forward)
        }
    }

    @Test func `a text is in the language the send asks for, else the recipient's, else the bundle's first`()
        throws
    {
        let type = try #require(RepositoryBundle.policy.type(TypeID("transaction.remittance_sent")))
        func language(_ wish: String?, _ recipient: String?) throws -> String {
            let material = Sample.material(type, on: .push, locale: wish)
            let content = Self.content(of: material, recipientLocale: recipient)
            return try #require(content).language.description
        }
        #expect(try language("nb", "en") == "nb")
        #expect(try language(nil, "nb-NO") == "nb-NO")
        #expect(try language("nn-NO", nil) == "nb")
        #expect(try language("xx", "nb") == "nb")
        #expect(try language("xx", nil) == "nb")
        #expect(try language("en-US", "nb") == "en-US")
        #expect(try language("not a tag", nil) == "nb")
    }
}

extension SendMaterial {
    /// What the bytes say; they have to be canonical.
    fileprivate var tree: JSONObject {
        get throws { try #require(try CanonicalJSON.readCanonical(bytes).objectValue) }
    }
}

@Suite struct SendMaterialTests {
    @Test func `held material reads back as it was`() throws {
        #expect(RepositoryBundle.policy.types.count > 50)
        for type in RepositoryBundle.policy.types {
            var material = Sample.material(type, on: .push, locale: "nb")
            material.ttlFromDueSeconds = 3600
            #expect(try SendMaterial(json: material.tree) == material)
            (material.deepLink, material.locale, material.collapse) = (nil, nil, nil)
            #expect(try SendMaterial(json: material.tree) == material)
        }
    }

    @Test func `a life is never shortened, and ends 28 days after the arrival`() {
        var material = Sample.material(RepositoryBundle.policy.types[0], on: .push)
        let first = material.expiresAt
        material.countLife(from: material.sentAt.advanced(bySeconds: 86_400))
        #expect(material.expiresAt == first)
        material.ttlFromDueSeconds = 3600
        material.countLife(from: material.sentAt.advanced(bySeconds: -86_400))
        #expect(material.expiresAt == first)
        material.countLife(from: material.sentAt.advanced(bySeconds: 86_400))
        #expect(material.expiresAt == material.sentAt.advanced(bySeconds: 86_400 + 3600))
        material.countLife(from: material.sentAt.advanced(bySeconds: 60 * 86_400))
        #expect(material.expiresAt == material.sentAt.advanced(bySeconds: 28 * 86_400))
    }

    @Test func `held material of another shape is refused`() throws {
        let type = RepositoryBundle.policy.types[0]
        let json = try Sample.material(type, on: .push).tree
        for key in ["expires_at", "params", "request", "send_id", "sent_at"] {
            var broken = json
            broken[key] = nil
            #expect(throws: JSONShapeError.self) { try SendMaterial(json: broken) }
        }
        var extra = json
        extra["token"] = "x"
        #expect(throws: JSONShapeError.self) { try SendMaterial(json: extra) }
    }

    @Test func `a producer's collapse key cannot pass for a type's`() throws {
        let collapsing = try #require(RepositoryBundle.policy.types.first { $0.collapses })
        let other = try #require(RepositoryBundle.policy.types.first { !$0.collapses })
        func text(_ key: String?, _ type: NotificationType) -> String? {
            SendMaterial.collapseText(of: key, [:], for: type, by: CallerName("payments"))
        }
        #expect(text(nil, collapsing) == "type:\(collapsing.id)")
        #expect(text(nil, other) == nil)
        #expect(text("type:\(collapsing.id)", other) == "key:payments\0type:\(collapsing.id)")
    }
}

@Suite struct ParamsCheckTests {
    static let type = TypeID("transaction.remittance_sent")

    @Test func `params that fit are valid, and nothing is recorded of them`() throws {
        let params = Canary.params(of: try #require(RepositoryBundle.policy.type(Self.type)))
        let verdict = ParamsCheck(params, of: Self.type, under: RepositoryBundle.policy)
        #expect(verdict.fact == .valid)
        #expect(verdict.recorded(for: Self.type, under: RepositoryBundle.policy).isEmpty)
    }

    @Test func `a name nobody declared is not recorded`() throws {
        var params = Canary.params(of: try #require(RepositoryBundle.policy.type(Self.type)))
        params["Ahmad Karimi"] = 1
        params["recipient_name"] = 5
        params["amount"] = ["currency": "NOK", "minor": 5, "Ahmad": 1]
        let verdict = ParamsCheck(params, of: Self.type, under: RepositoryBundle.policy)
        #expect(verdict.fact == .invalid)
        let recorded = verdict.recorded(for: Self.type, under: RepositoryBundle.policy).map(\.text)
        #expect(recorded == ["/params", "/params/amount", "/params/recipient_name"])
    }
}

@Suite struct OverallAnswerTests {
    static func decision(_ reason: Reason, at gate: Gate?) -> Decision {
        var trace = Trace()
        if let gate { trace[gate] = .fail(reason) }
        return Decision(
            outcome: reason.outcome, reason: reason, detail: nil,
            notBefore: reason.outcome == .defer ? Sample.now : nil, form: .never, interruption: .passive,
            notes: [],
            trace: trace)
    }

    @Test func `the best delivery speaks for the send, whatever their order`() {
        let ranked = [
            Self.decision(.allowed, at: nil), Self.decision(.genericOnly, at: .deviceKey),
            Self.decision(.quietHoursDeferred, at: .quietHours), Self.decision(.digested, at: .caps),
            Self.decision(.expired, at: .expiry), Self.decision(.userPreference, at: .preferences),
            Self.decision(.blockedAtOSLevel, at: .osPermission), Self.decision(.unknownType, at: .type),
            Self.decision(.noDestination, at: .destination), Self.decision(.noDeviceKey, at: .deviceKey),
            Self.decision(.payloadTooLarge, at: .size),
        ]
        for better in ranked.indices {
            for worse in ranked.indices where worse > better {
                #expect(OverallAnswer.best(of: [ranked[better], ranked[worse]]) == ranked[better])
                #expect(OverallAnswer.best(of: [ranked[worse], ranked[better]]) == ranked[better])
            }
        }
    }

    @Test func `among equals the earlier destination speaks`() {
        let one = Self.decision(.pushDisabled, at: .preferences)
        let other = Self.decision(.userPreference, at: .preferences)
        #expect(OverallAnswer.best(of: [one, other]).reason == .pushDisabled)
        #expect(OverallAnswer.best(of: [other, one]).reason == .userPreference)
    }
}
