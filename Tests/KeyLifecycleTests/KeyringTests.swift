import SealedFormat
import GateVocabulary
import KeyLifecycle
import Testing

@Suite struct KeyringTests {
    static let start = Instant(milliseconds: 1_795_000_000_000)
    static let (one, other) = (CallerName("keys-team"), CallerName("keys-witness"))

    static func key(_ id: String, _ purpose: KeyPurpose, createdAt seconds: Int64 = 0) -> GatewayKey {
        GatewayKey(
            id: id, purpose: purpose, state: .preActivation, createdAt: start.advanced(bySeconds: seconds),
            changedAt: start, publicKey: purpose.isAsymmetric ? Array(repeating: 7, count: 32) : nil)
    }

    /// One active key of every purpose.
    static func started() -> Keyring {
        var keyring = Keyring()
        _ = keyring.adopt(KeyPurpose.allCases.map { key("\($0)-1", $0) }, at: start)
        return keyring
    }

    @Test func `the first start uses the newest key of each purpose`() {
        var keyring = Keyring()
        let changes = keyring.adopt(
            [Self.key("data-1", .data), Self.key("data-2", .data, createdAt: 5), Self.key("root-1", .root)],
            at: Self.start)
        #expect(changes.map(\.key.id) == ["data-1", "root-1", "data-2"])
        #expect(changes.allSatisfy { $0.event == .add && $0.cause == .found })
        #expect(keyring.active(.data)?.id == "data-2" && keyring["data-1"]?.state == .deactivated)
    }

    @Test func `a file that is found later waits, whatever it is for`() {
        var keyring = Self.started()
        let changes = keyring.adopt(
            [Self.key("data-2", .data, createdAt: 5), Self.key("root-2", .root, createdAt: 5)],
            at: Self.start)
        #expect(keyring["data-2"]?.state == .preActivation && keyring.active(.data)?.id == "data-1")
        #expect(keyring["root-2"]?.state == .preActivation && keyring.active(.root)?.id == "root-1")
        #expect(changes.map(\.event.rawValue) == ["add", "add"])
        var again = keyring
        #expect(again.adopt(keyring.keys, at: Self.start).isEmpty && again == keyring)
    }

    @Test(arguments: Keyring.rotating)
    func `promoting a key deactivates the one before`(purpose: KeyPurpose) throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", purpose))
        if purpose == .root {
            _ = try keyring.apply(.promote, to: "new", because: .request, by: Self.other, at: Self.start)
        }
        let changes = try keyring.apply(
            .promote, to: "new", because: .request, by: Self.one, at: Self.start)
        #expect(changes.map(\.key.id) == ["\(purpose)-1", "new"])
        #expect(changes.map(\.cause) == [.rotation, .request])
        #expect(keyring.active(purpose)?.id == "new" && keyring["\(purpose)-1"]?.state == .deactivated)
        #expect(keyring.keys.count { $0.purpose == purpose && $0.state == .active } == 1)
    }

    @Test func `one key of a purpose waits at a time`() throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", .origin))
        #expect(throws: KeyringRefusal.another(id: "new", state: .preActivation)) {
            try keyring.add(Self.key("newer", .origin))
        }
        _ = try keyring.add(Self.key("other", .trail))
    }

    @Test func `a key that is to replace another is added while that one is in use`() throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", .origin), replacing: "origin-1")
        _ = try keyring.apply(.promote, to: "new", because: .request, by: Self.one, at: Self.start)
        let before = keyring
        #expect(throws: KeyringRefusal.superseded("origin-1")) {
            try keyring.add(Self.key("newer", .origin), replacing: "origin-1")
        }
        // The key of another purpose, and none at all.
        for other in ["trail-1", "never-made"] {
            let refusal = #expect(throws: KeyringRefusal.self) {
                try keyring.add(Self.key("newer", .origin), replacing: other)
            }
            #expect(refusal == .superseded(other))
            #expect(refusal?.message.hasPrefix("`\(other)` is not the key that a new one would") == true)
        }
        #expect(keyring == before)
        _ = try keyring.add(Self.key("newer", .origin), replacing: "new")
    }

    @Test(arguments: [KeyEvent.suspend, .deactivate, .revoke])
    func `while no key is in use the newest that does not wait is replaced, once`(_ event: KeyEvent) throws {
        var keyring = Self.started()
        for (key, old) in [("origin-2", "origin-1"), ("origin-3", "origin-2")] {
            _ = try keyring.add(Self.key(key, .origin), replacing: old)
            _ = try keyring.apply(.promote, to: key, because: .request, by: Self.one, at: Self.start)
        }
        _ = try keyring.apply(event, to: "origin-3", because: .request, by: Self.one, at: Self.start)
        #expect(keyring.active(.origin) == nil && keyring.replaceable(.origin)?.id == "origin-3")
        #expect(throws: KeyringRefusal.superseded("origin-2")) {
            try keyring.add(Self.key("new", .origin), replacing: "origin-2")
        }
        _ = try keyring.add(Self.key("new", .origin), replacing: "origin-3")
        #expect(keyring.replaceable(.origin)?.id == "origin-3")
        #expect(throws: KeyringRefusal.another(id: "new", state: .preActivation)) {
            try keyring.add(Self.key("newer", .origin), replacing: "origin-3")
        }
        _ = try keyring.apply(.promote, to: "new", because: .request, by: Self.one, at: Self.start)
        #expect(throws: KeyringRefusal.superseded("origin-3")) {
            try keyring.add(Self.key("newer", .origin), replacing: "origin-3")
        }
    }

    @Test(arguments: [KeyPurpose.index, .policy], KeyEvent.allCases)
    func `keys that change elsewhere do not change here`(purpose: KeyPurpose, event: KeyEvent) {
        var keyring = Self.started()
        let before = keyring
        #expect(throws: KeyringRefusal.changesElsewhere(purpose)) { try keyring.add(Self.key("n", purpose)) }
        #expect(throws: KeyringRefusal.changesElsewhere(purpose)) {
            try keyring.apply(event, to: "\(purpose)-1", because: .request, by: Self.one, at: Self.start)
        }
        #expect(keyring == before)
    }

    @Test(arguments: [KeyPurpose.root, .trail, .data, .link], [KeyEvent.suspend, .deactivate, .revoke])
    func `the last key the gateway goes on with stays`(purpose: KeyPurpose, event: KeyEvent) {
        var keyring = Self.started()
        #expect(throws: KeyringRefusal.lastOfPurpose(purpose, event)) {
            try keyring.apply(event, to: "\(purpose)-1", because: .request, by: Self.one, at: Self.start)
        }
    }

    @Test func `a stolen origin key is stopped at once, and another may not be resumed beside it`() throws {
        var keyring = Self.started()
        _ = try keyring.apply(.suspend, to: "origin-1", because: .request, by: Self.one, at: Self.start)
        #expect(keyring.active(.origin) == nil)
        _ = try keyring.add(Self.key("new", .origin))
        _ = try keyring.apply(.promote, to: "new", because: .request, by: Self.one, at: Self.start)
        #expect(keyring["origin-1"]?.state == .suspended)
        #expect(throws: KeyringRefusal.another(id: "new", state: .active)) {
            try keyring.apply(.resume, to: "origin-1", because: .request, by: Self.one, at: Self.start)
        }
        _ = try keyring.apply(.revoke, to: "origin-1", because: .compromised, by: Self.one, at: Self.start)
        #expect(keyring["origin-1"]?.isCompromised == true)
    }

    @Test(arguments: Keyring.rotating)
    func `a key without its private half does not come into use, and may go`(purpose: KeyPurpose) throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", purpose))
        let before = keyring
        let new = try #require(keyring["new"])
        // For a root key the proposal as well.
        let refusal = #expect(throws: KeyringRefusal.self) {
            try keyring.apply(
                .promote, to: "new", because: .request, by: Self.one, at: Self.start,
                isLoaded: { $0 != "new" })
        }
        #expect(refusal == .notLoaded(new) && keyring == before)
        for told in [purpose.rawValue, "`new`", purpose.use, "put `new.key` back", "destroy the key"] {
            #expect(refusal?.message.contains(told) == true, "\(told)")
        }
        for caller in [Self.one, Self.other] {
            _ = try keyring.apply(
                .destroy, to: "new", because: .request, by: caller, at: Self.start, isLoaded: { _ in false })
        }
        #expect(keyring["new"]?.state == .destroyed)
    }

    @Test func `a suspended key without its private half is not resumed, and another is added`() throws {
        var keyring = Self.started()
        _ = try keyring.apply(
            .suspend, to: "origin-1", because: .request, by: Self.one, at: Self.start,
            isLoaded: { _ in false })
        let suspended = try #require(keyring["origin-1"])
        #expect(throws: KeyringRefusal.notLoaded(suspended)) {
            try keyring.apply(
                .resume, to: "origin-1", because: .request, by: Self.one, at: Self.start,
                isLoaded: { _ in false })
        }
        #expect(keyring["origin-1"] == suspended)
        _ = try keyring.apply(.revoke, to: "origin-1", because: .lost, by: Self.one, at: Self.start)
        _ = try keyring.add(Self.key("new", .origin))
    }

    @Test func `keys are bounded, and destroyed ones make room`() throws {
        var keyring = Self.started()
        for number in 2...Keyring.keyCountMax {
            _ = try keyring.add(Self.key("link-\(number)", .link, createdAt: Int64(number)))
            _ = try keyring.apply(
                .promote, to: "link-\(number)", because: .request, by: Self.one, at: Self.start)
        }
        #expect(throws: KeyringRefusal.tooManyKeys(.link)) { try keyring.add(Self.key("more", .link)) }
        for number in 1..<Keyring.keyCountMax {
            for caller in [Self.one, Self.other] {
                _ = try keyring.apply(
                    .destroy, to: "link-\(number)", because: .retired, by: caller, at: Self.start)
            }
        }
        _ = try keyring.add(Self.key("more", .link))
        #expect(keyring["link-1"]?.state == .destroyed)
    }

    @Test func `a data key that sealed before is missed until it is destroyed, and no other key is`()
        throws
    {
        var keyring = Self.started()
        for purpose in [KeyPurpose.data, .link] {
            let (new, old) = ("new-\(purpose.rawValue)", "\(purpose.rawValue)-1")
            _ = try keyring.add(Self.key(new, purpose))
            let expected = purpose == .data ? [] : ["data-1"]
            #expect(keyring.earlierDataKeys(missingFrom: []).map(\.id) == expected)
            _ = try keyring.apply(.promote, to: new, because: .request, by: Self.one, at: Self.start)
            #expect(keyring[old]?.state == .deactivated)
        }
        #expect(keyring.earlierDataKeys(missingFrom: []).map(\.id) == ["data-1"])
        #expect(keyring.earlierDataKeys(missingFrom: ["data-1"]).isEmpty)
        _ = try keyring.apply(.revoke, to: "data-1", because: .compromised, by: Self.one, at: Self.start)
        #expect(keyring.earlierDataKeys(missingFrom: []).map(\.id) == ["data-1"])
        for caller in [Self.one, Self.other] {
            _ = try keyring.apply(.destroy, to: "data-1", because: .request, by: caller, at: Self.start)
        }
        #expect(keyring["data-1"]?.state == .destroyed)
        #expect(keyring.earlierDataKeys(missingFrom: []).isEmpty)
    }

    @Test func `two callers destroy a key, within an hour`() throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", .origin))
        _ = try keyring.apply(.promote, to: "new", because: .request, by: Self.one, at: Self.start)
        func destroy(_ caller: CallerName, after seconds: Int64) throws -> [KeyTransition.Event] {
            try keyring.apply(
                .destroy, to: "origin-1", because: .request, by: caller,
                at: Self.start.advanced(bySeconds: seconds)
            ).map(\.event)
        }
        #expect(try destroy(Self.one, after: 0) == [.proposeDestruction])
        #expect(
            throws: KeyringRefusal.secondCallerMissing(until: Self.start.advanced(bySeconds: 3600))
        ) { try destroy(Self.one, after: 1) }
        // Too late: it counts as the first of two.
        #expect(try destroy(Self.other, after: 3601) == [.proposeDestruction])
        #expect(keyring["origin-1"]?.state == .deactivated)
        #expect(try destroy(Self.one, after: 7201) == [.destroy])
        #expect(keyring["origin-1"]?.state == .destroyed && keyring["origin-1"]?.proposed == nil)
    }

    @Test func `two callers promote a root key, within an hour, and what else was proposed does not count`()
        throws
    {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", .root))
        func ask(_ event: KeyEvent, _ caller: CallerName, after seconds: Int64) throws -> [KeyTransition
            .Event]
        {
            try keyring.apply(
                event, to: "new", because: .request, by: caller, at: Self.start.advanced(bySeconds: seconds)
            ).map(\.event)
        }
        #expect(try ask(.destroy, Self.other, after: 0) == [.proposeDestruction])
        #expect(try ask(.promote, Self.one, after: 1) == [.proposePromotion])
        #expect(
            throws: KeyringRefusal.secondCallerMissing(until: Self.start.advanced(bySeconds: 3601))
        ) { try ask(.promote, Self.one, after: 2) }
        // The promotion took the place of the destruction.
        #expect(try ask(.destroy, Self.one, after: 3) == [.proposeDestruction])
        #expect(try ask(.promote, Self.other, after: 4) == [.proposePromotion])
        #expect(keyring.active(.root)?.id == "root-1")
        #expect(try ask(.promote, Self.one, after: 3605) == [.proposePromotion])
        #expect(try ask(.promote, Self.other, after: 3606) == [.deactivate, .promote])
        #expect(keyring.active(.root)?.id == "new" && keyring["new"]?.proposed == nil)
    }

    @Test(arguments: [(-3_600_000, false), (-1, false), (0, true), (3_600_000, true), (3_600_001, false)])
    func `a proposal is open for its hour, and to no clock that stands before it`(
        milliseconds: Int64, isOpen: Bool
    ) throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", .origin))
        _ = try keyring.apply(.destroy, to: "new", because: .request, by: Self.one, at: Self.start)
        let second = try keyring.apply(
            .destroy, to: "new", because: .request, by: Self.other,
            at: Self.start.advanced(byMilliseconds: milliseconds))
        #expect(second.map(\.event) == [isOpen ? .destroy : .proposeDestruction])
    }

    @Test func `a data key under which rows may lie is not destroyed`() throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", .data))
        _ = try keyring.apply(.promote, to: "new", because: .request, by: Self.one, at: Self.start)
        #expect(throws: KeyringRefusal.stillNeeded("data-1")) {
            try keyring.apply(
                .destroy, to: "data-1", because: .request, by: Self.one, at: Self.start
            ) { $0 == "data-1" }
        }
    }

    @Test func `a refused change changes nothing`() throws {
        for event in KeyEvent.allCases {
            var keyring = Self.started()
            let before = keyring
            #expect(throws: KeyringRefusal.unknownKey("nobody")) {
                try keyring.apply(event, to: "nobody", because: .request, by: Self.one, at: Self.start)
            }
            #expect(keyring == before)
        }
    }

    @Test func `the stored text is read back, and nothing else is`() throws {
        var keyring = Self.started()
        _ = try keyring.add(Self.key("new", .origin))
        _ = try keyring.apply(.revoke, to: "new", because: .compromised, by: Self.one, at: Self.start)
        _ = try keyring.apply(.destroy, to: "new", because: .request, by: Self.one, at: Self.start)
        #expect(Keyring(text: keyring.text) == keyring)
        #expect(
            keyring["new"]?.proposed?.proposal.caller == Self.one && keyring["new"]?.isCompromised == true)
        for text in [
            "", "{}", "[1]", "[{\"id\":\"x\"}]", keyring.text + "x", keyring.text + "\n",
            // A key that was compromised must not be read as one that was not.
            keyring.text.replacing("\"compromised\":true", with: "\"compromised\":1"),
            keyring.text.replacing("\"compromised\":true", with: "\"compromised\":false"),
            keyring.text.replacing("\"compromised\":true", with: "\"compromise\":true"),
            keyring.text.replacing("\"proposed\":\"destroy\"", with: "\"proposed\":\"end\""),
        ] {
            #expect(text != keyring.text)
            #expect(Keyring(text: text) == nil, "\(text)")
        }
    }
}
