import GateVocabulary
import OpenSSLCrypto
import SealedFormat
import SealedPush
import Testing

@Suite struct OpeningTests {
    /// On both sides of every bucket's edge.
    @Test(arguments: SealingSuite.allCases, [0, 1, 181, 182, 183, 437, 438, 439, 949, 950, 951, 1973, 1974])
    func `what the gateway seals, the app opens`(suite: SealingSuite, count: Int) throws {
        let scene = try Scene(suite)
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 5) }
        let opening = try scene.opener().open(scene.seal(content), now: Scene.now)
        guard case .opened(let message) = opening else {
            Issue.record("a first message was taken for a repeated one")
            return
        }
        #expect(message.content == content)
        #expect(message.messageID == Scene.messageID.uuidText)
        #expect(message.expiresAt == Scene.expiresAt)
    }

    @Test(arguments: SealingSuite.allCases) func `two hundred messages open`(suite: SealingSuite) throws {
        let scene = try Scene(suite)
        let opener = try scene.opener()
        var sealer = try Sealer()
        for number in 0..<200 {
            let envelope = try sealer.seal(
                [UInt8(number)], to: scene.sealingKey, purpose: .notification, app: Scene.app,
                device: DestinationID(Scene.device), keyID: Scene.keyID,
                messageID: MessageID(high: 0, low: UInt64(number)), expiresAt: Scene.expiresAt,
                origin: scene.signer)
            #expect(try opener.open(envelope, now: Scene.now).message.content == [UInt8(number)])
        }
    }

    @Test func `text and parsed fields open like bytes`() throws {
        let scene = try Scene(.p256)
        let bytes = try scene.seal(Array("{}".utf8))
        let opener = try scene.opener()
        _ = try opener.open(String(decoding: bytes, as: UTF8.self), now: Scene.now)
        // The fields make the same envelope, so it counts as the one already opened.
        let envelope = try SealedEnvelope(decoding: bytes)
        let opening = try opener.open(
            version: 1, suite: envelope.suite.rawValue, keyID: Scene.keyID.hexadecimal,
            messageID: Scene.messageID.uuidText, expiresAt: Int64(Scene.expiresAt),
            ciphertext: Base64URL.encode(envelope.sealed), now: Scene.now)
        #expect(opening == .alreadyOpened(opening.message))
        #expect(opening.message.content == Array("{}".utf8))
        #expect(throws: SealedPushError.self) {
            try opener.open(
                version: 2, suite: envelope.suite.rawValue, keyID: Scene.keyID.hexadecimal,
                messageID: Scene.messageID.uuidText, expiresAt: Int64(Scene.expiresAt),
                ciphertext: Base64URL.encode(envelope.sealed), now: Scene.now)
        }
    }

    @Test func `during a rotation both the old and the new key open their messages`() throws {
        let scene = try Scene(.p256)
        let newKey = try Scene.newDeviceKey(.x25519, keyID: KeyID(high: 7, low: 7))
        let opener = try scene.opener(keys: [newKey, scene.deviceKey])
        _ = try opener.open(scene.seal([1]), now: Scene.now)
        var sealer = try Sealer()
        let toNewKey = try sealer.seal(
            [2], to: DeviceSealingKey(DevicePublicKey(validating: newKey.publicKey, suite: .x25519)),
            purpose: .notification, app: Scene.app, device: DestinationID(Scene.device),
            keyID: KeyID(high: 7, low: 7), messageID: MessageID(high: 1, low: 1), expiresAt: Scene.expiresAt,
            origin: scene.signer)
        #expect(try opener.open(toNewKey, now: Scene.now).message.content == [2])
    }
}

@Suite struct TamperingTests {
    @Test(arguments: SealingSuite.allCases) func `any changed byte of an envelope is refused`(
        suite: SealingSuite
    ) throws {
        let scene = try Scene(suite)
        let opener = try scene.opener()
        let envelope = try scene.seal(Array("{\"amount\":500000}".utf8))
        for index in envelope.indices {
            // Bit 0 turns most characters into a neighbour that the format also allows at this place.
            for change in [0x01, 0x20] as [UInt8] {
                var changed = envelope
                changed[index] ^= change
                #expect(throws: SealedPushError.self, "byte \(index)") {
                    try opener.open(changed, now: Scene.now)
                }
            }
        }
        // And nothing of all that was recorded as seen.
        let opening = try opener.open(envelope, now: Scene.now)
        #expect(opening == .opened(opening.message))
    }

    @Test func `an envelope cut anywhere, or with something added, is refused`() throws {
        let scene = try Scene(.x25519)
        let opener = try scene.opener()
        let envelope = try scene.seal([1])
        for count in 0..<envelope.count {
            #expect(throws: SealedPushError.self) {
                try opener.open(Array(envelope.prefix(count)), now: Scene.now)
            }
        }
        for added in [" ", "\n", "}", "\0"] {
            #expect(throws: SealedPushError.self) {
                try opener.open(envelope + Array(added.utf8), now: Scene.now)
            }
        }
    }

    @Test(arguments: SealingSuite.allCases) func `another device, app or private key opens nothing`(
        suite: SealingSuite
    ) throws {
        let scene = try Scene(suite)
        let envelope = try scene.seal([1])
        #expect(throws: SealedPushError.cannotOpen) {
            try scene.opener(device: "d_2").open(envelope, now: Scene.now)
        }
        #expect(throws: SealedPushError.cannotOpen) {
            try scene.opener(app: "no.getdrop.apq").open(envelope, now: Scene.now)
        }
        let otherKey = try Scene.newDeviceKey(suite)
        #expect(throws: SealedPushError.cannotOpen) {
            try scene.opener(keys: [otherKey]).open(envelope, now: Scene.now)
        }
    }

    @Test func `an envelope for an unknown key is named as such`() throws {
        let scene = try Scene(.p256)
        let opener = try scene.opener(keys: [Scene.newDeviceKey(.p256, keyID: KeyID(high: 9, low: 9))])
        #expect(throws: SealedPushError.unknownKey(keyID: Scene.keyID.hexadecimal)) {
            try opener.open(scene.seal([1]), now: Scene.now)
        }
    }

    @Test func `the suite comes from the app's record, whatever the envelope says`() throws {
        // Given an envelope of one suite, and a device whose record of that key id has the other.
        let scene = try Scene(.x25519)
        let opener = try scene.opener(keys: [Scene.newDeviceKey(.p256)])
        #expect(throws: SealedPushError.suiteMismatch(keyID: Scene.keyID.hexadecimal)) {
            try opener.open(scene.seal([1]), now: Scene.now)
        }
    }

    @Test func `a message opens until its expiry and not from then on`() throws {
        let scene = try Scene(.p256)
        let envelope = try scene.seal([1])
        _ = try scene.opener().open(envelope, now: Scene.expiresAt - 1)
        for now in [Scene.expiresAt, Scene.expiresAt + 1, UInt64.max] {
            #expect(throws: SealedPushError.expired(expiredAt: Scene.expiresAt)) {
                try scene.opener().open(envelope, now: now)
            }
        }
    }

    @Test func `a message whose own time is over does not open, although its envelope lives on`() throws {
        let scene = try Scene(.p256)
        // Given a message that ends a minute before what its envelope says.
        let end = Scene.expiresAt - 60
        let content = Array(
            #"{"body":"\"expires_at\":9","expires_at":\#(end * 1000 + 999),"params":{"expires_at":1}}"#.utf8)
        let envelope = try scene.seal(content)
        let opened = try scene.opener().open(envelope, now: end - 1)
        #expect(opened.message.expiresAt == end && opened.message.content == content)
        for now in [end, end + 1, Scene.expiresAt - 1] {
            #expect(throws: SealedPushError.expired(expiredAt: end)) {
                try scene.opener().open(envelope, now: now)
            }
        }
        // One that claims more than its envelope has no more, and one that says nothing has the envelope's.
        for content in [#"{"expires_at":99999999999999}"#, #"{"expires_at":-1000}"#, "[]", "x"] {
            let envelope = try scene.seal(Array(content.utf8))
            let isOpened = (try? scene.opener().open(envelope, now: Scene.expiresAt - 1)) != nil
            #expect(isOpened == !content.contains("-"), "\(content)")
            #expect(throws: SealedPushError.self) { try scene.opener().open(envelope, now: Scene.expiresAt) }
        }
    }

    @Test func `an expiry moved into the future does not open`() throws {
        let scene = try Scene(.p256)
        let text = String(decoding: try scene.seal([1]), as: UTF8.self)
        let moved = text.split(separator: "\(Scene.expiresAt)").joined(
            separator: "\(Scene.expiresAt + 86_400)")
        #expect(throws: SealedPushError.cannotOpen) { try scene.opener().open(moved, now: Scene.expiresAt) }
    }

    @Test func `a message under another message id does not open`() throws {
        let scene = try Scene(.p256)
        let envelope = try SealedEnvelope(decoding: scene.seal([1]))
        let moved = try SealedEnvelope(
            suite: envelope.suite, keyID: envelope.keyID, messageID: MessageID(high: 5, low: 5).bytes,
            expiresAt: envelope.expiresAt, sealed: envelope.sealed)
        #expect(throws: SealedPushError.cannotOpen) { try scene.opener().open(moved.bytes, now: Scene.now) }
    }
}

@Suite struct OriginTests {
    @Test func `a stranger who seals to the device is not believed`() throws {
        let scene = try Scene(.p256)
        // HPKE's base mode lets any holder of the public key seal; only the signature inside tells.
        let stranger = try OriginSigner(keyID: Scene.originKeyID, privateKey: .generate())
        #expect(throws: SealedPushError.forgedOrigin(originKeyID: "0a1b2c3d4e5f6071")) {
            try scene.opener().open(scene.seal([1], signer: stranger), now: Scene.now)
        }
        let unknown = try OriginSigner(keyID: [UInt8](repeating: 1, count: 8), privateKey: .generate())
        #expect(throws: SealedPushError.unknownOrigin(originKeyID: "0101010101010101")) {
            try scene.opener().open(scene.seal([1], signer: unknown), now: Scene.now)
        }
        #expect(throws: SealedPushError.unknownOrigin(originKeyID: "0a1b2c3d4e5f6071")) {
            try scene.opener(origins: []).open(scene.seal([1]), now: Scene.now)
        }
    }

    @Test func `either of two pinned origin keys is believed`() throws {
        let scene = try Scene(.p256)
        let next = try OriginSigner(keyID: [UInt8](repeating: 2, count: 8), privateKey: .generate())
        let pinned = try OriginKey(keyID: "0202020202020202", publicKey: next.privateKey.publicKey.rawBytes)
        let opener = try scene.opener(origins: [pinned, scene.origin])
        _ = try opener.open(scene.seal([1]), now: Scene.now)
        _ = try opener.open(
            scene.seal([1], messageID: MessageID(high: 1, low: 1), signer: next), now: Scene.now)
    }

    @Test(arguments: SealingSuite.allCases) func `a genuine plaintext sealed by other code opens`(
        suite: SealingSuite
    ) throws {
        let scene = try Scene(suite)
        let envelope = try scene.sealRaw(scene.plaintext(Array("hello".utf8)))
        #expect(try scene.opener().open(envelope, now: Scene.now).message.content == Array("hello".utf8))
    }

    @Test func `a signature over another message or purpose is not believed`() throws {
        let scene = try Scene(.p256)
        let content = [UInt8](repeating: 1, count: 32)
        // An attacker who learned a genuine challenge's plaintext seals it again as a notification.
        let envelope = try scene.sealRaw(
            scene.plaintext(content, purpose: .challenge), purpose: .notification)
        #expect(throws: SealedPushError.forgedOrigin(originKeyID: "0a1b2c3d4e5f6071")) {
            try scene.opener().open(envelope, now: Scene.now)
        }
    }

    @Test func `each changed byte of content, length and signature is not believed`() throws {
        let scene = try Scene(.x25519)
        let opener = try scene.opener()
        let plaintext = try scene.plaintext([1, 2, 3])
        for index in 0..<(8 + 64 + 2 + 3) {
            var changed = plaintext
            changed[index] ^= 1
            #expect(throws: SealedPushError.self, "byte \(index)") {
                try opener.open(scene.sealRaw(changed), now: Scene.now)
            }
        }
    }

    @Test func `padding that is not zeros is refused`() throws {
        let scene = try Scene(.p256)
        var plaintext = try scene.plaintext([1, 2, 3])
        plaintext[255] = 1
        #expect(
            throws: SealedPushError.malformedMessage(detail: "not a sealed message: its padding is not zeros")
        ) { try scene.opener().open(scene.sealRaw(plaintext), now: Scene.now) }
    }

    @Test func `a bucket larger than needed is refused`() throws {
        let scene = try Scene(.p256)
        let plaintext = try scene.plaintext([1, 2, 3]) + [UInt8](repeating: 0, count: 256)
        #expect(
            throws: SealedPushError.malformedMessage(
                detail: "not a sealed message: its content fits a smaller bucket")
        ) { try scene.opener().open(scene.sealRaw(plaintext), now: Scene.now) }
    }
}

@Suite struct RepetitionTests {
    @Test func `the same envelope again is already opened, with its content, and no error`() throws {
        let scene = try Scene(.p256)
        // The app and its extension have openers of their own and share the record.
        let seen = InMemorySeenMessages()
        let (extensionOpener, appOpener) = (try scene.opener(seen: seen), try scene.opener(seen: seen))
        let envelope = try scene.seal([1, 2])
        let first = try extensionOpener.open(envelope, now: Scene.now)
        #expect(first == .opened(first.message))
        for _ in 0..<2 {
            #expect(try appOpener.open(envelope, now: Scene.now) == .alreadyOpened(first.message))
        }
    }

    @Test func `a message id that comes again with other bytes is dropped`() throws {
        let scene = try Scene(.p256)
        let opener = try scene.opener()
        _ = try opener.open(scene.seal([1]), now: Scene.now)
        // Even the same content: a retry carries the envelope of the first try, never a second sealing.
        #expect(throws: SealedPushError.repeatedMessageID(messageID: Scene.messageID.uuidText)) {
            try opener.open(scene.seal([1]), now: Scene.now)
        }
    }

    @Test func `without a record of what was seen nothing opens`() throws {
        struct Broken: SeenMessages {
            struct DiskFull: Error {}
            func record(messageID: [UInt8], digest: [UInt8], expiresAt: UInt64) throws -> SeenMessage {
                throw DiskFull()
            }
        }
        let scene = try Scene(.p256)
        #expect(throws: SealedPushError.seenMessagesUnavailable(detail: "DiskFull()")) {
            try scene.opener(seen: Broken()).open(scene.seal([1]), now: Scene.now)
        }
    }

    @Test func `of many openers at once exactly one is the first`() async throws {
        let scene = try Scene(.p256)
        let opener = try scene.opener()
        let envelope = try scene.seal([1])
        let firsts = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<16 {
                group.addTask {
                    if case .opened = try opener.open(envelope, now: Scene.now) { 1 } else { 0 }
                }
            }
            return try await group.reduce(into: 0) { $0 += $1 }
        }
        #expect(firsts == 1)
    }

    @Test func `the record in memory is bounded, and expired entries make room`() throws {
        let seen = InMemorySeenMessages(countMax: 2)
        let digest = [UInt8](repeating: 0, count: 32)
        #expect(try seen.record(messageID: [1], digest: digest, expiresAt: 100) == .new)
        #expect(try seen.record(messageID: [2], digest: digest, expiresAt: 200) == .new)
        #expect(throws: InMemorySeenMessages.TooManyMessages.self) {
            try seen.record(messageID: [3], digest: digest, expiresAt: 300)
        }
        // What is known is still answered.
        #expect(try seen.record(messageID: [1], digest: digest, expiresAt: 100) == .same)
        #expect(try seen.record(messageID: [1], digest: [1], expiresAt: 100) == .different)
        seen.forgetExpired(now: 100)
        #expect(throws: InMemorySeenMessages.TooManyMessages.self) {
            try seen.record(messageID: [3], digest: digest, expiresAt: 300)
        }
        seen.forgetExpired(now: 101)
        #expect(try seen.record(messageID: [3], digest: digest, expiresAt: 300) == .new)
        #expect(try seen.record(messageID: [2], digest: digest, expiresAt: 200) == .same)
    }
}

@Suite struct ChallengeTests {
    @Test(arguments: SealingSuite.allCases) func `the device's proof satisfies the gateway`(
        suite: SealingSuite
    ) throws {
        let scene = try Scene(suite)
        let nonce = try SecretBytes.random(byteCount: 32)
        var sealer = try Sealer()
        let challenge = try sealer.challenge(
            nonce: nonce, to: scene.sealingKey, app: Scene.app, device: DestinationID(Scene.device),
            keyID: Scene.keyID, messageID: Scene.messageID, expiresAt: Scene.expiresAt, origin: scene.signer)
        let opener = try scene.opener()
        let text = try opener.proof(forChallenge: challenge.envelope, now: Scene.now)
        let proof = try #require(Base64URL.decode(text))
        #expect(Possession.isProved(by: proof, nonce: nonce, info: challenge.info))
        // Asked again, it answers the same.
        #expect(
            try opener.proof(
                forChallenge: String(decoding: challenge.envelope, as: UTF8.self), now: Scene.now) == text)
        // The nonce itself is no proof.
        #expect(
            !Possession.isProved(by: nonce.withUnsafeBytes { Array($0) }, nonce: nonce, info: challenge.info))
    }

    @Test func `a challenge is no notification and a notification no challenge`() throws {
        let scene = try Scene(.p256)
        let content = [UInt8](repeating: 5, count: 32)
        let challenge = try scene.seal(content, purpose: .challenge)
        let notification = try scene.seal(content)
        #expect(throws: SealedPushError.cannotOpen) { try scene.opener().open(challenge, now: Scene.now) }
        #expect(throws: SealedPushError.cannotOpen) {
            try scene.opener().proof(forChallenge: notification, now: Scene.now)
        }
    }

    @Test func `a challenge is answered only in time and only for the gateway`() throws {
        let scene = try Scene(.p256)
        let nonce = [UInt8](repeating: 5, count: 32)
        #expect(throws: SealedPushError.expired(expiredAt: Scene.expiresAt)) {
            try scene.opener().proof(
                forChallenge: scene.seal(nonce, purpose: .challenge), now: Scene.expiresAt)
        }
        let stranger = try OriginSigner(keyID: Scene.originKeyID, privateKey: .generate())
        #expect(throws: SealedPushError.forgedOrigin(originKeyID: "0a1b2c3d4e5f6071")) {
            try scene.opener().proof(
                forChallenge: scene.seal(nonce, purpose: .challenge, signer: stranger), now: Scene.now)
        }
    }

    @Test func `a challenge with another length inside is not answered`() throws {
        let scene = try Scene(.p256)
        let envelope = try scene.sealRaw(
            scene.plaintext([1, 2, 3], purpose: .challenge), purpose: .challenge)
        #expect(throws: SealedPushError.malformedMessage(detail: "a challenge holds 32 bytes, this one 3")) {
            try scene.opener().proof(forChallenge: envelope, now: Scene.now)
        }
    }
}

@Suite struct ConfigurationTests {
    @Test func `ids, keys and names of the wrong form are refused with what they should be`() throws {
        let scene = try Scene(.p256)
        for keyID in ["", "00", "00112233445566778899AABBCCDDEEFF", String(repeating: "0", count: 34)] {
            #expect(throws: SealedPushError.self, "`\(keyID)`") { try OriginKey(keyID: keyID, publicKey: []) }
        }
        #expect(
            throws: SealedPushError.malformedConfiguration(
                detail: "an Ed25519 public key is 32 bytes, this one has 31")
        ) {
            try OriginKey(keyID: "0a1b2c3d4e5f6071", publicKey: [UInt8](repeating: 0, count: 31))
        }
        #expect(throws: SealedPushError.self) { try scene.opener(app: "") }
        #expect(throws: SealedPushError.self) {
            try scene.opener(device: String(repeating: "d", count: 1025))
        }
    }

    @Test func `two keys under one id are refused`() throws {
        let scene = try Scene(.p256)
        #expect(
            throws: SealedPushError.malformedConfiguration(
                detail: "two keys have the id `\(Scene.keyID.hexadecimal)`")
        ) { try scene.opener(keys: [scene.deviceKey, Scene.newDeviceKey(.x25519)]) }
        #expect(throws: SealedPushError.self) { try scene.opener(origins: [scene.origin, scene.origin]) }
    }

    @Test func `a device key shows what registration takes`() throws {
        #expect(try Scene.newDeviceKey(.p256).suiteName == "P256_SHA256_AES256GCM")
        #expect(try Scene.newDeviceKey(.p256).publicKey.count == 65)
        #expect(try Scene.newDeviceKey(.p256).publicKey.first == 0x04)
        #expect(try Scene.newDeviceKey(.x25519).suiteName == "X25519_SHA256_CHACHA20POLY1305")
        #expect(try Scene.newDeviceKey(.x25519).publicKey.count == 32)
    }
}
