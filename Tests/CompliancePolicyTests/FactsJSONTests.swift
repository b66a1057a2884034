import BundleModel
import CanonicalJSON
import CompliancePolicy
import GateTestKit
import GateVocabulary
import PlainPolicy
import Testing

@Suite struct FactsJSONTests {
    @Test func `facts written and read are the same facts, and the same bytes`() throws {
        var numbers = SeededNumbers(seed: 3)
        for _ in 0..<1_000 {
            let facts = Facts.random(using: &numbers)
            let bytes = CanonicalJSON.write(facts.json)
            let read = try Facts(json: try #require(CanonicalJSON.readCanonical(bytes).objectValue))
            #expect(read == facts)
            #expect(CanonicalJSON.write(read.json) == bytes)
        }
    }

    @Test func `random facts leave no fact as it is, unknown among its values`() throws {
        var numbers = SeededNumbers(seed: 17)
        var sends = RandomSends(try Repository.policy().bundle, seed: 17)
        let sources: [(name: String, next: () -> Facts)] = [
            ("Facts.random", { .random(using: &numbers) }), ("RandomSends", { sends.next().1 }),
        ]
        for source in sources {
            var values: [String: Set<JSONValue?>] = [:]
            for _ in 0..<4_000 {
                let json = source.next().json
                for name in Facts.names { values[name, default: []].insert(json[name]) }
            }
            for name in Facts.names {
                let found = values[name, default: []]
                #expect(found.count > 2 && found.contains(nil), "\(source.name): \(name) is \(found)")
            }
        }
    }

    @Test func `a case may write every fact that is a moment as text`() {
        let moments = Mirror(reflecting: Facts.ready).children.filter { $0.value is Instant }
        #expect(Facts.names.filter(PolicyCase.isMoment).count == moments.count)
    }

    @Test func `nothing known is an empty object`() throws {
        #expect(Facts().json == JSONObject())
        #expect(try Facts(json: JSONObject()) == Facts())
    }

    @Test func `the names are the keys of facts that know everything`() {
        #expect(Array(Facts.ready.json.keys) == Facts.names)
    }

    @Test func `a fact taken away is the key taken away`() {
        let facts = Facts.ready
        for name in Facts.names {
            var expected = facts.json
            expected[name] = nil
            #expect(facts.removing(name)?.json == expected)
        }
        #expect(facts.removing("weather") == nil)
    }

    @Test func `a fact taken from others is their value under its key`() {
        for name in Facts.names {
            var expected = JSONObject()
            expected[name] = Facts.ready.json[name]
            #expect(Facts().taking(name, from: .ready)?.json == expected)
        }
        #expect(Facts().taking("weather", from: .ready) == nil)
    }

    @Test(arguments: [
        ("{\"weather\":\"fine\"}", "/weather", "nothing of this name"),
        ("{\"now\":null}", "/now", "found null"),
        ("{\"now\":\"2026-03-02T12:00:00Z\"}", "/now", "found a string"),
        ("{\"age\":\"Adult\"}", "/age", "`adult`, `minor`"),
        ("{\"push_enabled\":1}", "/push_enabled", "true or false"),
        ("{\"type_count\":-1}", "/type_count", "0 or more"),
        (
            "{\"account_region\":{\"code\":\"no\",\"source\":\"kyc\",\"observed_at\":0}}",
            "/account_region/code", "ISO 3166"
        ),
        (
            "{\"account_region\":{\"code\":\"NO\",\"source\":\"kyc\"}}", "/account_region/observed_at",
            "missing"
        ),
        ("{\"device_regions\":[{\"code\":\"NO\"}]}", "/device_regions/0/observed_at", "missing"),
        ("{\"quiet_hours\":{\"state\":\"inside\"}}", "/quiet_hours/ends_at", "missing"),
        (
            "{\"quiet_hours\":{\"state\":\"off\",\"ends_at\":0}}", "/quiet_hours/ends_at",
            "nothing of this name"
        ),
        ("{\"consent\":{\"state\":\"given\",\"by\":\"me\"}}", "/consent/by", "nothing of this name"),
        ("{\"sizes\":{\"sealed\":-1}}", "/sizes/sealed", "0 or more"),
        ("{\"consent\":\"given\"}", "/consent", "expected an object"),
    ])
    func `facts that are not quite right are refused with their place`(
        text: String, pointer: String, message: String
    ) throws {
        let object = try #require(CanonicalJSON.read(Array(text.utf8)).objectValue)
        let error = #expect(throws: JSONShapeError.self) { try Facts(json: object) }
        #expect(error?.pointer.text == pointer)
        #expect(error?.message.contains(message) == true)
    }

    @Test func `more device regions than a recipient can have devices are refused`() throws {
        var facts = Facts()
        facts.deviceRegions = Array(repeating: .of("NO"), count: 22)
        #expect(throws: JSONShapeError.self) { try Facts(json: facts.json) }
    }
}

@Suite struct DecisionJSONTests {
    let policy: CompiledPolicy

    init() throws { policy = try TestBundle.minimal.compile() }

    @Test func `decisions written and read are the same decisions`() throws {
        var numbers = SeededNumbers(seed: 5)
        for index in 0..<1_000 {
            let type = policy.types[index % policy.types.count]
            let found = decide(.of(type.id), given: .random(using: &numbers), under: policy)
            let bytes = CanonicalJSON.write(found.json)
            let read = try Decision.read(field: CanonicalJSON.readCanonical(bytes))
            #expect(read == found)
        }
    }

    static let impossible: [(key: String, value: JSONValue, pointer: String)] = [
        ("outcome", "reject", "/outcome"), ("outcome", "sent", "/outcome"), ("reason", "because", "/reason"),
        ("detail", "never_asked", "/detail"), ("not_before", 5, "/not_before"), ("form", "bold", "/form"),
        ("interruption", 1, "/interruption"),
        ("notes", ["mandatory_passed", "critical_downgraded"], "/notes"), ("notes", ["fine"], "/notes/0"),
        ("notes", ["mandatory_passed", "mandatory_passed"], "/notes"), ("trace", ["pass"], "/trace"),
        ("why", "so", "/why"),
    ]

    @Test(arguments: impossible)
    func `a decision that decide cannot have made is refused`(
        key: String, value: JSONValue, pointer: String
    ) throws {
        var object = decide(.of(TestType.payment), given: .ready, under: policy).json
        object[key] = value
        let error = #expect(throws: JSONShapeError.self) { try Decision.read(field: .object(object)) }
        #expect(error?.pointer.text == pointer)
    }

    @Test(arguments: ["passed", "allowed", "minor:refused", "fact_missing:", "fact_missing:weather", ""])
    func `a gate's result has one spelling`(name: String) {
        #expect(GateResult(name: name) == nil)
    }

    @Test func `every result a gate can give has a name that reads back`() {
        for reason in Reason.allCases where reason != .allowed {
            for detail in reason.details.map(Optional.some) + [nil] {
                let result = GateResult.fail(reason, detail)
                #expect(GateResult(name: result.name) == result)
            }
        }
        #expect(GateResult(name: "pass") == .pass)
        #expect(GateResult(name: "not_applicable") == .notApplicable)
    }

    @Test func `a request written and read is the same request`() throws {
        let request = AttestedRequest.of(TestType.login, on: .sms, critical: true)
        #expect(try AttestedRequest(json: request.json) == request)
        var object = request.json
        object["user"] = "u_42"
        #expect(throws: JSONShapeError.self) { try AttestedRequest(json: object) }
    }

    @Test func `two names that only look alike are two names`() {
        let composed = UserID("caf\u{E9}")
        let decomposed = UserID("cafe\u{301}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect((composed < decomposed) != (decomposed < composed))
    }
}
