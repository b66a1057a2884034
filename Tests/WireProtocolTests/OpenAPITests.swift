import CanonicalJSON
import GateRecords
import GateVocabulary
import Testing

@testable import GatewayPipeline
@testable import WireProtocol

@Suite struct OpenAPITests {
    let document = JSONValue.object(Route.openAPI)
    let reader = SchemaReader(document: .object(Route.openAPI))

    func schema(_ name: String) throws -> JSONValue {
        try #require(document["components"]?["schemas"]?[name])
    }

    @Test(arguments: BodyCase.all)
    func `the parser and the reference agree on every neighbour of an example`(_ body: BodyCase) throws {
        let schema = try schema(body.name)
        let seeds = [body.example] + BodyCase.accepted.filter { $0.body == body.name }.map(\.value)
        var acceptedCount = 0
        var refusedCount = 0
        for seed in seeds {
            #expect(body.accepts(seed), "\(body.name) refuses \(seed)")
            for value in [seed] + Mutations.around(seed) {
                let isAccepted = body.accepts(value)
                let isDescribed = try reader.accepts(value, schema)
                #expect(
                    isAccepted == isDescribed,
                    "\(body.name): parser \(isAccepted), reference \(isDescribed): \(value)")
                if isAccepted { acceptedCount += 1 } else { refusedCount += 1 }
            }
        }
        // A check that never saw both answers has checked nothing.
        #expect(acceptedCount > 0 && refusedCount > 0)
    }

    @Test func `every route is described once, and nothing else is`() throws {
        var described = 0
        for path in try #require(document["paths"]?.objectValue) {
            for operation in try #require(path.value.objectValue) {
                let name = operation.value["operationId"]?.stringValue
                let route = try #require(Route.all.map(\.description).first { $0.name == name })
                #expect(route.path == path.key)
                #expect(route.method.rawValue.lowercased() == operation.key)
                described += 1
            }
        }
        #expect(described == Route.all.count)
    }

    @Test func `every grant in the reference is one the vocabulary knows`() throws {
        var known: Set<Grant> = []
        for path in try #require(document["paths"]?.objectValue) {
            for operation in try #require(path.value.objectValue) {
                let grants = try #require(operation.value["x-sendgate-grant"]?.arrayValue)
                for grant in grants {
                    known.insert(try #require(grant.stringValue.flatMap { Grant(rawValue: $0) }))
                }
                #expect(["known", "anybody"].contains(operation.value["x-sendgate-caller"]?.stringValue))
            }
        }
        #expect(known.count > 8, "only \(known) open anything")
    }

    @Test func `every example fits its schema`() throws {
        var count = 0
        for path in try #require(document["paths"]?.objectValue) {
            for operation in try #require(path.value.objectValue) {
                var contents: [JSONValue] = []
                if let body = operation.value["requestBody"]?["content"] { contents.append(body) }
                for response in try #require(operation.value["responses"]?.objectValue) {
                    // A response that is a reference is looked at where it stands.
                    if let content = response.value["content"] { contents.append(content) }
                }
                for content in contents {
                    for (mediaType, media) in try #require(content.objectValue).members {
                        guard let schema = media["schema"] else { continue }
                        var examples = try (media["examples"]?.objectValue ?? [:]).members.map {
                            try value(ofExample: $0.value)
                        }
                        if let example = media["example"] { examples.append(example) }
                        for example in examples {
                            #expect(
                                try reader.accepts(example, schema),
                                "\(path.key) \(operation.key) \(mediaType): \(example)")
                            count += 1
                        }
                    }
                }
            }
        }
        for response in try #require(document["components"]?["responses"]?.objectValue) {
            for media in try #require(response.value["content"]?.objectValue) {
                for example in try #require(media.value["examples"]?.objectValue) {
                    let schema = try #require(media.value["schema"])
                    #expect(try reader.accepts(value(ofExample: example.value), schema), "\(response.key)")
                    count += 1
                }
            }
        }
        #expect(count > 100)
    }

    /// An example's value, where it stands or where it refers to.
    private func value(ofExample example: JSONValue) throws -> JSONValue {
        guard let reference = example["$ref"]?.stringValue else { return try #require(example["value"]) }
        let pointer = try #require(JSONPointer(parsing: String(reference.dropFirst())))
        return try #require(document[pointer]?["value"])
    }

    @Test func `every request example is read`() throws {
        var count = 0
        for route in Route.all.map(\.description) {
            guard let content = route.body.content else { continue }
            for example in content.examples {
                count += 1
                #expect(
                    content.shape.violations(of: example.value).isEmpty, "\(route.name): \(example.name)")
            }
        }
        #expect(count > 15)
    }

    @Test func `every operation tells how the kernel's answer and a bad request look`() throws {
        for route in Route.all.map(\.description) {
            let statuses = Set(route.problems.map(\.status))
            #expect(statuses.isSuperset(of: [400, 408, 413, 422, 429, 431, 503]))
            #expect(statuses.contains(401) == route.permission.needsCaller)
            #expect(statuses.contains(415) == (route.body.content != nil))
        }
    }

    @Test func `the document is the same bytes every time`() throws {
        #expect(Route.openAPIBytes == CanonicalJSON.write(Route.openAPI))
        #expect(try CanonicalJSON.readCanonical(Route.openAPIBytes, limits: .document) == document)
    }

    @Test(arguments: [
        ("identifier", TextRule.identifier), ("purpose", .purpose), ("noticePart", .noticePart),
        ("providerReason", .providerReason), ("paramName", .paramName), ("paramText", .paramText),
        ("uuid", .uuid),
        ("keyID", .keyID), ("sha256", .sha256), ("base64url32", .base64url32),
        ("base64urlP256Point", .base64urlP256Point), ("instant", .instant), ("minuteOfDay", .minuteOfDay),
        ("region", .region), ("locale", .locale), ("timeZone", .timeZone), ("deepLink", .deepLink),
        ("app", .app),
        ("apnsToken", .apnsToken), ("fcmToken", .fcmToken),
        ("expoToken", .expoToken), ("phoneNumber", .phoneNumber), ("email", .email),
        ("sender", .sender),
    ])
    func `a text rule's check and its pattern agree on texts near its own`(_ name: String, _ rule: TextRule)
        throws
    {
        let schema = JSONValue.object(rule.schema)
        var random = SmallRandom(state: 0x5EED)
        let seeds = [
            "a", "marketing", "9f86d081884c7d659a2feaa0c55ad015", "u_42", "nb-NO", "zh-Hant-TW",
            "Europe/Oslo",
            "America/Argentina/Buenos_Aires", "US-CA", "NO", "21:00", "23:59", "2028-02-29T23:59:59.999Z",
            "2000-02-29T00:00:00+14:00", "2100-02-28T12:00:00-12:30", "drop://send?x=1", "no.getdrop.app",
            "+4790000000", "name.surname+tag@mail.example.org", "x@y-z.example", "BadDeviceToken",
            "7d1c0d52-93a1-4f0e-8d7b-2f3f1f0a9c11", "ExponentPushToken[aZ9_-]", "ExpoPushToken[x]",
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA",
            "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
        ]
        let alphabet: [Unicode.Scalar] = Array(
            "aAzZ09fFgG._-+/:@%T Z~!\u{7F}\u{80}\u{9F}\u{A0}\u{85}æ\u{301}🦊\n\t\u{0}\u{1F}B".unicodeScalars)
        var acceptedCount = 0
        for seed in seeds {
            for _ in 0..<400 {
                var scalars = Array(seed.unicodeScalars)
                for _ in 0..<random.next(upTo: 3) {
                    let place = scalars.isEmpty ? 0 : random.next(upTo: scalars.count)
                    switch random.next(upTo: 3) {
                    case 0 where !scalars.isEmpty: scalars.remove(at: place)
                    case 1 where !scalars.isEmpty:
                        scalars[place] = alphabet[random.next(upTo: alphabet.count)]
                    default: scalars.insert(alphabet[random.next(upTo: alphabet.count)], at: place)
                    }
                }
                var text = ""
                text.unicodeScalars.append(contentsOf: scalars)
                let isChecked = rule.accepts(text)
                #expect(
                    isChecked == (try reader.accepts(.string(text), schema)),
                    "\(name): \(text.debugDescription)")
                if isChecked { acceptedCount += 1 }
            }
        }
        #expect(acceptedCount > 0, "\(name) accepted nothing")
    }
}

/// SplitMix64: small, seeded, the same on every machine.
struct SmallRandom {
    var state: UInt64

    mutating func next(upTo bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }
}
