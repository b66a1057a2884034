package import CanonicalJSON
import Foundation

extension ProviderAnswer {
    /// The body as JSON of any kind (RFC 8259): a number that is no integer becomes its text, which is enough for a code or an id.
    /// `nil` when it is none.
    package var lenientJSON: JSONValue? {
        switch Result(catching: { try JSONDecoder().decode(LenientJSON.self, from: Data(body)) }) {
        case .success(let json): json.value
        case .failure: nil
        }
    }
}

private struct LenientJSON: Decodable {
    var value: JSONValue

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            value = .null
        } else if case .success(let truth) = Result(catching: { try container.decode(Bool.self) }) {
            value = .boolean(truth)
        } else if case .success(let number) = Result(catching: { try container.decode(Int64.self) }) {
            value = .integer(number)
        } else if case .success(let number) = Result(catching: { try container.decode(Double.self) }) {
            value = .string("\(number)")
        } else if case .success(let text) = Result(catching: { try container.decode(String.self) }) {
            value = .string(text)
        } else if case .success(let list) = Result(catching: { try container.decode([LenientJSON].self) }) {
            value = .array(list.map(\.value))
        } else {
            let members = try container.decode([String: LenientJSON].self)
            value = .object(JSONObject(members.map { ($0.key, $0.value.value) }))
        }
    }
}
