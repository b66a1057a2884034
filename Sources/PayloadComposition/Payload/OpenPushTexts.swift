import CanonicalJSON
import GateVocabulary
import SealedFormat

/// The members of an open push as texts, whatever their shape is in a provider's body (FCM, `Message.data`: values are
/// strings). A generic push has no more than constant texts, the random id of the send, and the way to mute.
///
/// The body that FCM gets shows them, and the origin key signs them: each is made once for both.
struct OpenPushTexts {
    private var actionCategory: String?
    private var alertRecord: String?
    private var badge: String?
    private let body: String
    private var category: String?
    private var deepLink: String?
    private var number: String?
    private var params: String?
    private let send: String
    private let title: String
    private var type: String?
    private let unsubscribe: String?

    init(of content: NotificationContent, for platform: Platform, as form: BodyForm) {
        send = content.send.uuidText
        unsubscribe = content.unsubscribeLink
        guard form == .full else {
            (title, body) = (content.closedTitle, content.constantText.body)
            return
        }
        (title, body) = content.shownTexts
        if platform == .ios {
            actionCategory = content.actionCategory
            badge = content.badge.map { String($0) }
        }
        if let alert = content.number {
            alertRecord = String(content.hasAlertRecord)
            number = String(alert)
        }
        category = content.category.rawValue
        deepLink = content.deepLink
        if !content.references.isEmpty { params = content.references.description }
        type = content.type.text
    }

    subscript(member: OpenPushMember) -> String? {
        switch member {
        case .actionCategory: actionCategory
        case .alertRecord: alertRecord
        case .badge: badge
        case .body: body
        case .category: category
        case .deepLink: deepLink
        case .number: number
        case .params: params
        case .send: send
        case .title: title
        case .type: type
        case .unsubscribe: unsubscribe
        }
    }

    /// What the origin key signs.
    func content() throws(CompositionError) -> OpenPushContent {
        do throws(SealedFormatError) {
            return try OpenPushContent { self[$0] }
        } catch {
            // Longer than any provider takes, and so refused by its size before it is signed.
            throw .tooLongToSign
        }
    }
}
