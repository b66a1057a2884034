/// One phone number or one mailbox in its canonical form, whichever people registered it and however they wrote it. Tags,
/// hashes, look-ups and comparisons of addresses are of this value.
package struct AddressKey: Hashable, Sendable {
    /// `sms` or `email`.
    package let channel: Channel
    /// ``PhoneNumber/text`` or ``Mailbox/text``.
    package let value: String

    package init(_ number: PhoneNumber) { (channel, value) = (.sms, number.text) }
    package init(_ mailbox: Mailbox) { (channel, value) = (.email, mailbox.text) }

    /// The sender of a reply or a report, as a carrier or a mail system names it.
    ///
    /// - Returns: `nil` for a sender that nobody can have registered: a short code, a name, several mailboxes.
    package init?(_ channel: Channel, sender: String) {
        switch channel {
        case .sms:
            guard let number = PhoneNumber(sender: sender) else { return nil }
            self.init(number)
        case .email:
            guard let mailbox = Mailbox(sender: sender) else { return nil }
            self.init(mailbox)
        case .push: return nil
        }
    }

    /// The key of what ``RegisteredAddress/value`` says. What is none, as the empty value of a person who is known by the
    /// trail alone, stands for itself.
    package init(_ channel: Channel, registered value: String) {
        self = (try? RegisteredAddress(channel, value).key) ?? AddressKey(channel: channel, value: value)
    }

    private init(channel: Channel, value: String) { (self.channel, self.value) = (channel, value) }
}

/// An address that was checked at registration: what it is known by, and what messages are handed over to.
package struct RegisteredAddress: Hashable, Sendable {
    package let key: AddressKey
    /// The canonical form of a number; the spelling of a mailbox that was verified.
    package let value: String

    /// What a text is in place of an address; says what was expected.
    package struct Fault: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    package init(_ channel: Channel, _ text: String) throws(Fault) {
        switch channel {
        case .sms:
            do {
                let number = try PhoneNumber(text)
                (key, value) = (AddressKey(number), number.text)
            } catch {
                throw Fault(description: error.description)
            }
        case .email:
            guard let address = RegisteredMailbox(text) else {
                throw Fault(
                    description:
                        "expected an e-mail address such as `name@example.org` and nothing beside it, in ASCII before the `@`, of at most 64 characters there and 254 in all"
                )
            }
            (key, value) = (AddressKey(address.mailbox), address.spelling)
        case .push: throw Fault(description: "expected an address of `sms` or `email`")
        }
    }
}
