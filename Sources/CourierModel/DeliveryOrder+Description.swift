import GateVocabulary

extension DeliveryOrder: CustomStringConvertible, CustomDebugStringConvertible {
    /// Names the message, and never its address, headers or content.
    package var description: String { "\(channel.rawValue) \(message.uuidText)" }
    package var debugDescription: String { description }
}

extension SignedWebhook: CustomStringConvertible, CustomDebugStringConvertible {
    /// Without the secrets.
    package var description: String { "signed webhook \(path)" }
    package var debugDescription: String { description }
}

extension TwilioWebhook: CustomStringConvertible, CustomDebugStringConvertible {
    /// Without the auth tokens.
    package var description: String { "webhook of Twilio \(path)" }
    package var debugDescription: String { description }
}
