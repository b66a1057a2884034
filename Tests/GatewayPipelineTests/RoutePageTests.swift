import Foundation
import GateVocabulary
import Testing
import WireProtocol

@testable import GatewayPipeline

/// The handbook's table of routes against what the routes declare.
@Suite struct RoutePageTests {
    private static let page = URL(fileURLWithPath: #filePath)
        .appendingPathComponent("../../../Sources/sendgate/Sendgate.docc/Routes.md").standardized

    private static func row(_ route: RouteDescription) -> String {
        let grants =
            switch route.permission {
            case .anybody: "none: any process that can connect"
            case .anyCaller: "any caller"
            case .oneOf(let grants): grants.map { "`\($0.rawValue)`" }.joined(separator: " ")
            }
        let besides = route.conditions.map { "`\($0.grant.rawValue)` \($0.when)" }.joined(separator: "; ")
        return "| `\(route.method.rawValue) \(route.path)` | \(grants) | \(besides) | \(route.summary) |"
    }

    @Test func `the handbook has every route with its grants`() throws {
        let expected = Route.all.map { Self.row($0.description) }
        let found = try String(contentsOf: Self.page, encoding: .utf8).split(separator: "\n").map(String.init)
            .filter { $0.hasPrefix("| `") }
        #expect(found == expected, "Routes.md should have these rows:\n\(expected.joined(separator: "\n"))")
    }
}
