import CanonicalJSON
package import GateVocabulary
import GateRecords

/// What an unsubscribe link is about: one category at one destination of one person.
///
/// The same link stands in every message of the category to the destination. It is written when the first of them is
/// composed, and destroyed with the person.
package struct UnsubscribeLink: Hashable, Sendable {
    /// A tag under the person's own key, so that a link cannot be guessed, and does not tell whose it is.
    package let id: Tag
    package let subject: SubjectID
    package let category: Category
    package let channel: Channel
    package let destination: Tag
    /// The hash of the mailbox that its messages go to (``IndexKey/addressHash(_:)``); `nil` of a push. A link outlives the
    /// person's own registration (SG-0057).
    package let mailbox: [UInt8]?

    package init(
        id: Tag, subject: SubjectID, category: Category, channel: Channel, destination: Tag,
        mailbox: [UInt8]?
    ) {
        self.id = id
        self.subject = subject
        self.category = category
        self.channel = channel
        self.destination = destination
        self.mailbox = mailbox
    }

    init(
        of subject: Subject, category: Category, channel: Channel, destination: Tag, mailbox: [UInt8]? = nil
    ) {
        self.init(
            id: subject.tag(
                .unsubscribe, "\(category.rawValue)\0\(channel.rawValue)\0\(destination.hexadecimal)"),
            subject: subject.id, category: category, channel: channel, destination: destination,
            mailbox: mailbox)
    }

    /// Whether its messages go, or went, to this number or mailbox.
    ///
    /// - Parameter subject: The link's own person.
    func isSent(to address: AddressKey, of subject: Subject) -> Bool {
        channel == address.channel && destination == subject.addressTag(address)
    }

    /// How long what a link did can be taken back.
    package static let undoSeconds: Int64 = 15 * 60

    /// Whether what a link did at one moment can be taken back at another.
    static func isUndoable(from use: Instant, at now: Instant) -> Bool {
        now < use.advanced(bySeconds: undoSeconds)
    }

    /// For how long a mute that is said again is the same word: a form that is sent twice. Later it is a word of its own, newer than a yes
    /// of between the two that is reported after it.
    static let repeatSeconds: Int64 = 60
    /// The same where more than ``undoCountMax`` were recorded in ``undoWindowSeconds``.
    static let oftenRepeatSeconds: Int64 = 3_600

    /// How many mutes at one place can be taken back in ``undoWindowSeconds``. Each mute that is taken back leaves records that
    /// are never deleted, and a link may be in many hands.
    package static let undoCountMax = 3
    package static let undoWindowSeconds: Int64 = 86_400
}

/// Where links lead, and what authenticates them.
package struct UnsubscribeAddress: Sendable {
    /// A token is appended.
    package let url: String
    package var keys: LinkKeys
    /// A token as long as every other, which leads to nothing.
    let placeholder: CountedText

    package init(url: String, keys: LinkKeys) {
        self.url = url
        self.keys = keys
        placeholder = CountedText(url + String(repeating: "A", count: UnsubscribeToken.characterCount))
    }

    func text(of link: UnsubscribeLink) -> String { url + keys.token(for: link.id) }
}

/// The state of a link's category at its destination, for its page: nothing of the person but their language.
package struct LinkStanding: Hashable, Sendable {
    package var category: Category
    package var channel: Channel
    /// A BCP 47 tag.
    package var locale: String?
    package var isOff: Bool
    /// Until when the mute can be taken back; `nil` when there is none that can.
    package var undoableUntil: Instant?
    /// Seconds east of UTC of the person's clocks at ``undoableUntil``; `nil` where their zone is not known.
    package var utcOffsetSeconds: Int?
    /// Whether a link ever switched it off there.
    package var wasMuted: Bool
    /// Whether the newest that was said there is that such a mute was taken back.
    package var isUndone: Bool

    package init(
        category: Category, channel: Channel, locale: String?, isOff: Bool, undoableUntil: Instant?,
        utcOffsetSeconds: Int? = nil, wasMuted: Bool = false, isUndone: Bool = false
    ) {
        self.wasMuted = wasMuted
        self.isUndone = isUndone
        self.category = category
        self.channel = channel
        self.locale = locale
        self.isOff = isOff
        self.undoableUntil = undoableUntil
        self.utcOffsetSeconds = utcOffsetSeconds
    }
}
