import CanonicalJSON
import GateVocabulary
import Testing

@testable import GatewayPipeline
@testable import WireProtocol

/// The socket's reference, and what it says to a body that is not as it should be.
@Suite struct GoldenWireTests {
    @Test func `the OpenAPI document is what its golden file says`() throws {
        func parts(_ object: JSONObject, at place: JSONPointer, depth: Int) -> [JSONValue] {
            object.members.flatMap { member -> [JSONValue] in
                let place = place.appending(member.key)
                guard depth > 0, let inner = member.value.objectValue else {
                    return [["at": .string(place.text), "is": member.value]]
                }
                return parts(inner, at: place, depth: depth - 1)
            }
        }
        // One line a path and one a schema. Together they are the document, which is canonical JSON.
        try GoldenFile("openapi.ndjson").expect(
            Route.openAPI.members.flatMap { member -> [JSONValue] in
                let place = JSONPointer([member.key])
                guard let object = member.value.objectValue else {
                    return [["at": .string(place.text), "is": member.value]]
                }
                return parts(object, at: place, depth: member.key == "components" ? 1 : 0)
            })
    }

    /// A member that is left out, and a value that hardly any may have.
    private static func slips(of value: JSONValue) -> [(name: String, value: JSONValue?)] {
        if case .integer = value { return [("left out", nil), ("negative", -1)] }
        return [("left out", nil), ("long", .string(String(repeating: "x", count: 5_000)))]
    }

    @Test func `what is said of every member of every body is what its golden file says`() throws {
        var lines: [JSONValue] = []
        var bodies: Set<[UInt8]> = []
        for route in Route.all.map(\.description) {
            guard let content = route.body.content else { continue }
            for example in content.examples where bodies.insert(CanonicalJSON.write(example.value)).inserted {
                let object = try #require(example.value.objectValue)
                #expect(content.shape.violations(of: example.value).isEmpty)
                for member in object.members {
                    // By what is said: the slips of which that is said.
                    var said = JSONObject()
                    for slip in Self.slips(of: member.value) {
                        var changed = object
                        changed[member.key] = slip.value
                        let violations = content.shape.violations(of: .object(changed))
                        let words = violations.map(\.description).joined(separator: "; ")
                        said[words] = .array((said[words]?.arrayValue ?? []) + [.string(slip.name)])
                    }
                    let line: JSONValue = [
                        "body": .string(route.name), "member": .string(member.key), "said": .object(said),
                    ]
                    // Examples of one body say the same of what they share.
                    if !lines.contains(line) { lines.append(line) }
                }
            }
            // The whole answer, to a member that no body has.
            let violations = content.shape.violations(of: ["no_such_member": 1])
            let answer = Problem(BodyError.invalid(violations)).answer
            lines.append([
                "body": .string(route.name), "status": .integer(Int64(answer.status)),
                "answer": try CanonicalJSON.read(answer.body),
            ])
        }
        #expect(bodies.count > 20)
        try GoldenFile("violations.ndjson").expect(lines)
    }
}
