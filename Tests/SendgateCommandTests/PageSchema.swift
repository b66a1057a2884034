import CanonicalJSON
import GateVocabulary

@testable import BundleModel

/// A page of the bundle as an editor needs it: the JSON Schema that follows from the function that reads the page.
struct PageSchema: Sendable {
    /// Of its file in `Policies/schema`, without `.schema.json`.
    let name: String
    private let title: String
    /// Of the pages of this kind; `nil` where a bundle has one page, which is named like the schema.
    let folder: String?
    private let read: @Sendable (NodeReader) -> Void

    private init(
        name: String, title: String, folder: String? = nil, read: @escaping @Sendable (NodeReader) -> Void
    ) {
        self.name = name
        self.title = title
        self.folder = folder
        self.read = read
    }

    /// What a page must be, as far as its reader says so; checks across lines and pages are not in it.
    var shape: Shape {
        let recorder = ShapeRecorder()
        read(NodeReader(describingIn: recorder))
        return recorder.shape
    }

    var schema: JSONObject {
        var components = SchemaComponents(place: "#/$defs/")
        var schema = components.schema(of: shape)
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        schema["$id"] = .string("urn:sendgate:schema:\(name)")
        schema["title"] = .string(title)
        if !components.schemas.isEmpty {
            schema["$defs"] = .object(JSONObject(components.schemas.map { ($0.key, $0.value) }))
        }
        return schema
    }

    /// Every kind of page, by the function that reads it.
    static let all = [
        PageSchema(name: "bundle", title: "A policy bundle's cover page") {
            _ = CoverPage($0, of: [:])
        },
        PageSchema(
            name: "reasons", title: "What is said of decisions in one language", folder: "reasons"
        ) { _ = Sentences(locale: "", $0) },
        PageSchema(name: "type", title: "One notification type", folder: "types") {
            _ = NotificationType($0, eventScope: TypeID(""))
        },
        PageSchema(name: "messages", title: "The texts of one language", folder: "messages") {
            _ = LocaleMessages(locale: "", $0)
        },
        PageSchema(
            name: "cases", title: "Named sends and the decisions they must get", folder: "cases"
        ) { _ = PolicyCase.read($0, types: [:]) },
        PageSchema(name: "limits", title: "How often is too often") { _ = LimitRules($0) },
        PageSchema(name: "regions", title: "Which law protects whom") { _ = RegionRules($0) },
        PageSchema(name: "callers", title: "Who may ask for what") { _ = CallerRule.page($0) },
        PageSchema(name: "critical", title: "What may break through Do Not Disturb") {
            _ = CriticalAllowance.page($0)
        },
        PageSchema(name: "categories", title: "The consent axis") { _ = CategoryRule.page($0) },
        PageSchema(name: "channels", title: "What the law and the carrier say about a channel") {
            _ = ChannelRules($0)
        },
        PageSchema(name: "notices", title: "What each consent text asks for") { _ = Notice.scopes($0) },
    ]
}
