/// By what a duty to tell a recipient can be done: the gateway's own channels, and what it can only ask for.
package enum DischargeMeans: String, CaseIterable, Sendable, Hashable {
    case push
    case sms
    case email
    case letter
    case phone

    package init(_ channel: Channel) { self = DischargeMeans(rawValue: channel.rawValue)! }

    /// `nil` for what the gateway does not send itself.
    package var channel: Channel? { Channel(rawValue: rawValue) }
}
