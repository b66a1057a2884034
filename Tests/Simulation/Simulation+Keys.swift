import CanonicalJSON
import Crypto
import GateTestKit
import GateVocabulary
import InMemoryStore
import GateRecords
import SealedFormat
import SealedPush

@testable import GateSteps

extension Simulation {
    /// Types that leave on push sealed, or as a constant text.
    static let sealedTypes: Set<String> = [
        "security.new_login", "transfer.sent", "transaction.remittance_sent", "2fa_code",
    ]
    /// Leaves sealed or not at all.
    static let onlySealedType = "2fa_code"

    /// Something happens to a key of a person's device.
    mutating func key(of index: Int) {
        switch dice.below(10) {
        case 0..<4:
            guard let id = registerKey(of: index), !dice.onceIn(3) else { break }
            proveKey(id, of: index)
        case 4..<6:
            let waiting = people[index].phone.keys.filter { $0.state == .waiting }
            guard !waiting.isEmpty else { break }
            proveKey(dice.one(of: waiting).id, of: index)
        case 6..<9:
            guard !people[index].phone.keys.isEmpty else { break }
            change(
                dice.one(of: people[index].phone.keys).id, dice.one(of: SimulatedPhone.Verb.allCases),
                of: index)
        default: askOfUnknownKey(of: index)
        }
        requireKeys(of: index)
    }

    private func path(_ index: Int) -> String {
        "/v1/recipients/\(people[index].user)/devices/\(SimulatedPhone.device)/keys"
    }

    // MARK: Registered and proved

    private mutating func registerKey(of index: Int) -> String? {
        let pair: P256.KeyAgreement.PrivateKey
        // Now and then one that was given up, or one of another id.
        if let known = compromisedPairs.last, dice.onceIn(8) {
            pair = known
        } else if let known = people[index].phone.keys.last?.pair, dice.onceIn(12) {
            pair = known
        } else {
            do {
                pair = try SimulatedPhone.pair(&dice)
            } catch {
                require(false, "no key pair: \(error)")
                return nil
            }
        }
        let isCompromised = isCompromised(pair)
        let before = people[index].phone.active?.id
        let now = environment.now()
        let mayRegister = people[index].phone.mayRegister(at: now)
        let reply = call(
            losesAnswers: false, "product", "POST", path(index),
            [
                "suite": "P256_SHA256_AES256GCM",
                "public_key": .string(Base64URL.encode(Array(pair.publicKey.x963Representation))),
            ])
        guard mayRegister else {
            count("key registered too often")
            require(
                reply.status == 429, "a registration too many is answered \(reply.status): \(reply.json)")
            return nil
        }
        if isCompromised {
            count("compromised key refused")
            require(
                reply.status == 409, "a compromised key is registered again: \(reply.status) \(reply.json)")
            return nil
        }
        guard reply.status == 201, let id = reply["key_id"], let own = reply.json["challenge"]?.objectValue,
            let expiry = reply["expires_at"].flatMap(Instant.init(rfc3339:))
        else {
            require(false, "a key is answered \(reply.status): \(reply.json)")
            return nil
        }
        requireEntry(of: reply)
        count("key registered")
        let old = reply.json["old_key_challenge"]?.objectValue
        require((old != nil) == (before != nil), "the key in use is not asked: \(reply.json)")
        people[index].phone.add(
            .init(
                id: id, pair: pair, registeredAt: now,
                challenge: .init(
                    own: SimulatedPhone.envelope(own), old: old.map(SimulatedPhone.envelope), oldKey: before,
                    expiresAt: expiry)))
        return id
    }

    private func isCompromised(_ pair: P256.KeyAgreement.PrivateKey) -> Bool {
        compromisedPairs.contains { $0.rawRepresentation == pair.rawRepresentation }
    }

    /// What a key answers to a challenge; `nil` where it does not open it.
    private func proof(of envelope: String, by key: SimulatedPhone.Key) -> String? {
        do {
            return try SimulatedPhone.opener(key, origin: parts.origin)
                .proof(forChallenge: envelope, now: UInt64(environment.now().seconds))
        } catch {
            return nil
        }
    }

    private mutating func proveKey(_ id: String, of index: Int) {
        let phone = people[index].phone
        guard let position = phone.position(of: id) else { return }
        let key = phone.keys[position]
        // The app may be slow.
        if dice.onceIn(6) { environment.advance(milliseconds: 301_000) }
        // A challenge that is over is not opened any more; then any bytes are as good.
        let nothing = Base64URL.encode([UInt8](repeating: 7, count: 32))
        var (isRight, isOldRight) = (false, key.challenge?.old == nil)
        var body: JSONObject = ["proof": .string(nothing)]
        if let challenge = key.challenge {
            if !dice.onceIn(5), let own = proof(of: challenge.own, by: key) {
                body["proof"] = .string(own)
                isRight = true
            }
            // A phone that lost the key before this one cannot answer for it.
            if let old = challenge.old, !dice.onceIn(4),
                let oldKey = challenge.oldKey.flatMap({ phone.position(of: $0) }).map({ phone.keys[$0] }),
                let answer = proof(of: old, by: oldKey)
            {
                body["old_key_proof"] = .string(answer)
                isOldRight = true
            }
        }
        let mayProve = phone.mayProve(key, at: environment.now()) && !isCompromised(key.pair)
        let reply = call(losesAnswers: false, "product", "POST", "\(path(index))/\(id)/confirm", body)
        if mayProve && isRight && isOldRight {
            require(reply.status == 200, "a right proof is answered \(reply.status): \(reply.json)")
            requireEntry(of: reply)
            count(phone.active == nil ? "key proved" : "key replaced")
            people[index].phone.activate(id)
        } else if mayProve {
            count("proof wrong")
            require(reply.status == 403, "a wrong proof is answered \(reply.status): \(reply.json)")
            people[index].phone.keys[position].challenge?.proofsLeft -= 1
            if people[index].phone.keys[position].challenge?.proofsLeft == 0 {
                people[index].phone.keys[position].challenge = nil
            }
        } else {
            count("proof too late")
            require(
                reply.status == 409, "a proof that comes too late is answered \(reply.status): \(reply.json)")
        }
    }

    // MARK: What the security team does

    private mutating func change(_ id: String, _ verb: SimulatedPhone.Verb, of index: Int) {
        guard let position = people[index].phone.position(of: id) else { return }
        let key = people[index].phone.keys[position]
        var next = verb.next(after: key.state)
        if next == .active, isCompromised(key.pair) { next = nil }
        if verb == .resume, people[index].phone.active != nil { next = nil }
        func ask(_ caller: String) -> SimulatedGateway.Reply {
            call(losesAnswers: false, caller, "POST", "/v1/keys/\(id)/\(verb.path)", verb.body)
        }
        var reply = ask("keys-team")
        if verb == .destroy, next != nil {
            require(
                reply.status == 202 && reply["state"] == key.state.rawValue,
                "one caller's destruction of a key that is \(key.state) is answered \(reply.status): \(reply.json)"
            )
            requireEntry(of: reply)
            reply = ask("keys-witness")
        }
        guard let next else {
            return require(
                reply.status == 409,
                "\(verb) of a key that is \(key.state) is answered \(reply.status): \(reply.json)")
        }
        require(
            reply.status == 200 && reply["state"] == next.rawValue,
            "\(verb) of a key that is \(key.state) is answered \(reply.status): \(reply.json)")
        requireEntry(of: reply)
        count(verb.isRevocation ? "key revoked" : "key changed")
        if next == .active {
            people[index].phone.activate(id)
        } else {
            people[index].phone.keys[position].state = next
            people[index].phone.keys[position].challenge = nil
        }
        people[index].phone.keys[position].isRevoked = key.isRevoked || verb.isRevocation
        guard next == .compromised else { return }
        count("key compromised")
        if !isCompromised(key.pair) { compromisedPairs.append(key.pair) }
        // The same pair under the person's other ids.
        for other in people[index].phone.keys.indices
        where people[index].phone.keys[other].publicKey == key.publicKey {
            guard let next = verb.next(after: people[index].phone.keys[other].state) else { continue }
            people[index].phone.keys[other].state = next
            people[index].phone.keys[other].challenge = nil
            people[index].phone.keys[other].isRevoked = true
        }
    }

    private mutating func askOfUnknownKey(of index: Int) {
        let forgotten = people[index].phone.forgotten.last
        let id = forgotten ?? "5b1d9f0477aa4c318c02f3d190be6a55"
        let verb = dice.one(of: SimulatedPhone.Verb.allCases)
        let reply = call(losesAnswers: false, "keys-team", "POST", "/v1/keys/\(id)/\(verb.path)", verb.body)
        require(reply.status == 404, "\(verb) of an unknown key is answered \(reply.status): \(reply.json)")
    }

    // MARK: What must hold

    /// What is stored of the keys is what the answers come to, and nothing waits that is sealed to a key that may not be used.
    mutating func requireKeys(of index: Int) {
        let person = people[index]
        let keys: [DeviceKeyRecord]
        do {
            keys = try gate.store.read { store in
                let subject = try store.subject(of: UserID(person.user))
                return try subject.flatMap { try store.state(of: $0.id) }?.keys ?? []
            }
        } catch {
            return require(false, "the keys cannot be read: \(error)")
        }
        let stored = Dictionary(
            keys.map { ($0.key.hexadecimal, $0.state) }, uniquingKeysWith: { one, _ in one })
        let known = Dictionary(uniqueKeysWithValues: person.phone.keys.map { ($0.id, $0.state.rawValue) })
        require(stored == known, "the keys are \(stored), and were answered as \(known)")
        require(stored.values.count { $0 == "active" } <= 1, "a device has two keys in use: \(stored)")
        for row in gate.store.committed.outbox.values where row.attemptedAt == nil {
            guard let key = row.key?.hexadecimal, person.phone.position(of: key) != nil else { continue }
            require(
                person.phone.mayReceive(sealedTo: key),
                "a message waits that is sealed to key \(key): \(person.phone.keys.map { ($0.id, $0.state) })"
            )
        }
    }

    /// A forward of something confidential: sealed to the key that is in use now, or a constant text where there is none.
    mutating func requireSealed(_ reply: SimulatedGateway.Reply, _ type: String, to index: Int) {
        guard Self.sealedTypes.contains(type) else { return }
        for delivery in reply.json["deliveries"]?.arrayValue ?? []
        where delivery["outcome"]?.stringValue == "forward" {
            let key = delivery["key_id"]?.stringValue
            let active = people[index].phone.active?.id
            require(key == active, "\(type) is sealed to \(key ?? "nothing"), in use is \(active ?? "none")")
            require(
                type != Self.onlySealedType || key != nil, "\(type) is forwarded without a key: \(reply.json)"
            )
            count(key == nil ? "constant text" : "sealed")
        }
    }

    /// What leaves is sealed to a key that may be sealed to, or says nothing that is confidential.
    mutating func requireConfidential(_ delivery: Delivery, _ type: String, to person: Person) {
        guard Self.sealedTypes.contains(type) else { return }
        let text = String(decoding: delivery.body + delivery.headers, as: UTF8.self)
        for secret in secrets { require(!text.contains(secret), "\(type) leaves in clear: \(text)") }
        let body: JSONValue
        let key: String?
        do {
            body = try CanonicalJSON.read(delivery.body)
            key = try body["sendgate"]?.stringValue.map {
                try CanonicalJSON.read(Array($0.utf8))["kid"]?.stringValue ?? "none"
            }
        } catch {
            return require(false, "\(type) leaves as what cannot be read: \(text)")
        }
        guard let key, let envelope = body["sendgate"]?.stringValue else {
            return require(type != Self.onlySealedType, "\(type) leaves without an envelope: \(text)")
        }
        require(
            person.phone.mayReceive(sealedTo: key),
            "\(type) goes sealed to key \(key): \(person.phone.keys.map { ($0.id, $0.state, $0.isRevoked) })")
        guard dice.onceIn(8), let position = person.phone.position(of: key) else { return }
        count("opened")
        do {
            let opened = try SimulatedPhone.opener(person.phone.keys[position], origin: parts.origin)
                .open(envelope, now: UInt64(environment.now().seconds)).message
            let content = String(decoding: opened.content, as: UTF8.self)
            require(
                type == Self.onlySealedType || secrets.contains { content.contains($0) },
                "what the phone opens of \(type) is not what was sent: \(content)")
        } catch {
            require(false, "the phone does not open \(type): \(error)")
        }
    }
}
