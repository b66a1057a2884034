import SealedPush

/// What an app shows for one push, or `nil` when it shows nothing.
func text(of envelope: String?, opener: SealedPushOpener, now: UInt64) -> [UInt8]? {
    // The app's own words: true of everything, and they say nothing.
    let own = Array(#"{"title":"News in the app","body":"Open the app to see it."}"#.utf8)
    guard let envelope else { return own }
    do {
        switch try opener.open(envelope, now: now) {
        case .opened(let message): return message.content
        case .alreadyOpened: return nil  // shown before, by the extension or an earlier delivery
        }
    } catch .expired, .repeatedMessageID {
        return nil
    } catch .unknownOrigin, .expiredKeyset {
        return own  // and get a newer keyset, then open it once more
    } catch {
        return own  // not the gateway's, not for this device, or not readable: never show what came
    }
}
