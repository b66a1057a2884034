#if canImport(UserNotifications) && canImport(UIKit)
    import CryptoKit
    import Foundation
    import SealedPush
    import Security
    import UIKit
    import UserNotifications

    // MARK: - In the app and in the extension

    /// What both read, in the container of their app group. Only the app writes, but for the record of seen messages and the
    /// wishes of the extension.
    struct PushRecords {
        static let app = "no.getdrop.app"
        static let group = "group.no.getdrop.app"
        /// Pinned: the gateway's name, and the key of its authority as `sendgate keys authority init` printed it.
        static let gateway = "gate.example.com/prod"
        static let authority = "example.com/authority+d99b4e2a+AZsYm8nqlq2mpDUhZpsWHWSOA3sVTAHCzs8ANpS4kMX8"

        /// Of this installation. The private keys are elsewhere: here are references to them.
        struct State: Codable {
            /// The id this device was registered under.
            var device: String
            var keys = KeptDeviceKeys()
            /// A key whose confirmation was begun. Stored first, as the gateway may seal to it before the app hears so.
            var pending: KeptDeviceKeys.Key?
        }

        private let folder: URL

        init() throws {
            guard
                let container = FileManager.default.containerURL(
                    forSecurityApplicationGroupIdentifier: Self.group)
            else { throw CocoaError(.fileNoSuchFile) }
            var folder = container.appending(path: "push", directoryHint: .isDirectory)
            // A push may come while the phone is locked: readable from the first unlock after a start on, not only while
            // it is unlocked.
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true,
                attributes: [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication])
            // A key does not leave the device, so its record does not come back with a backup either.
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try folder.setResourceValues(values)
            self.folder = folder
        }

        /// `nil` before the first registration. One that cannot be read, before the first unlock, is an error and not `nil`.
        func state() throws -> State? {
            guard FileManager.default.fileExists(atPath: path(of: "state.json")) else { return nil }
            return try JSONDecoder().decode(
                State.self, from: Data(contentsOf: folder.appending(path: "state.json")))
        }

        func store(_ state: State) throws {
            try write(JSONEncoder().encode(state), to: "state.json")
        }

        /// The newest that was accepted, or the one that app and extension were built with.
        func keyset() throws -> TrustedKeyset {
            guard let url = Bundle.main.url(forResource: "keyset", withExtension: nil) else {
                throw CocoaError(.fileNoSuchFile)
            }
            let built = try Self.trusted(Array(Data(contentsOf: url)))
            guard FileManager.default.fileExists(atPath: path(of: "keyset")) else { return built }
            do {
                let stored = try Self.trusted(Array(Data(contentsOf: folder.appending(path: "keyset"))))
                return stored.version > built.version ? stored : built
            } catch is SealedPushError {
                return built  // stored by an earlier build, which pinned another authority
            }
        }

        /// - Parameter known: The versions only rise.
        static func trusted(_ note: [UInt8], after known: TrustedKeyset? = nil) throws -> TrustedKeyset {
            // One that has expired is read too: it opens nothing, but an older one must not take its place.
            try TrustedKeyset(
                note: note, authorities: [AuthorityKey(authority)], gateway: gateway, after: known, now: 0)
        }

        func store(_ keyset: TrustedKeyset) throws { try write(Data(keyset.note), to: "keyset") }

        /// Holds every key that a message may be sealed to.
        func opener() throws -> SealedPushOpener {
            guard let state = try state() else { throw CocoaError(.fileNoSuchFile) }
            let keys = (state.pending.map { [$0] } ?? []) + state.keys.all
            return try SealedPushOpener(
                app: Self.app, device: state.device, keys: keys.map(PushKey.deviceKey), keyset: keyset(),
                seen: FileSeenMessages(file: path(of: "seen")))
        }

        /// What the extension cannot do itself, as it uses no network: the app does it at its next start.
        func wish(for advice: SealedPushError.Advice) throws {
            switch advice {
            case .fetchKeyset: try write(Data(), to: "wish-keyset")
            case .registerAgain: try write(Data(), to: "wish-registration")
            case .showOwnText, .showNothing: break
            }
        }

        /// - Returns: Whether there was one. It is gone then.
        func takeWish(_ name: String) throws -> Bool {
            guard FileManager.default.fileExists(atPath: path(of: name)) else { return false }
            try FileManager.default.removeItem(atPath: path(of: name))
            return true
        }

        /// Changes how many messages the person has not opened: the number on the icon. The lock is there because the
        /// extension and the app may count at the same moment.
        ///
        /// - Returns: The number after the change.
        @discardableResult
        func countUnread(_ change: (Int) -> Int) throws -> Int {
            let descriptor = open(path(of: "unread"), O_RDWR | O_CREAT, 0o600)
            guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
            let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            guard flock(descriptor, LOCK_EX) == 0 else { throw CocoaError(.fileLocking) }
            let stored = try file.readToEnd().map { String(decoding: $0, as: UTF8.self) }
            let count = change(stored.flatMap { Int($0) } ?? 0)
            try file.seek(toOffset: 0)
            try file.truncate(atOffset: 0)
            try file.write(contentsOf: Data(String(count).utf8))
            return count
        }

        private func path(of name: String) -> String {
            folder.appending(path: name).path(percentEncoded: false)
        }

        private func write(_ data: Data, to name: String) throws {
            try data.write(
                to: folder.appending(path: name),
                options: [.atomic, .completeFileProtectionUntilFirstUserAuthentication])
        }
    }

    /// The device's private key: in the Secure Enclave, or in the keychain of a device or simulator without one.
    enum PushKey {
        /// A reference that begins so names an item of the keychain; any other is the Secure Enclave's representation.
        private static let tagPrefix = "keychain:"

        static func make() throws -> (reference: [UInt8], publicKey: [UInt8]) {
            guard SecureEnclave.isAvailable else { return try makeInSoftware() }
            // Without this the key could be used only while the phone is unlocked.
            var failure: Unmanaged<CFError>?
            guard
                let access = SecAccessControlCreateWithFlags(
                    nil, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, .privateKeyUsage, &failure)
            else { throw CocoaError(.featureUnsupported) }
            let key = try SecureEnclave.P256.KeyAgreement.PrivateKey(accessControl: access)
            return (Array(key.dataRepresentation), Array(key.publicKey.x963Representation))
        }

        private static func makeInSoftware() throws -> (reference: [UInt8], publicKey: [UInt8]) {
            let key = P256.KeyAgreement.PrivateKey()
            let tag = tagPrefix + UUID().uuidString
            var item = query(tag)
            item[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
            item[kSecValueData as String] = key.rawRepresentation
            let status = SecItemAdd(item as CFDictionary, nil)
            guard status == errSecSuccess else {
                throw NSError(domain: NSOSStatusErrorDomain, code: Int(status))
            }
            return (Array(tag.utf8), Array(key.publicKey.x963Representation))
        }

        static func deviceKey(_ key: KeptDeviceKeys.Key) throws -> DeviceKey {
            guard key.reference.starts(with: tagPrefix.utf8) else {
                return try DeviceKey(
                    keyID: key.keyID,
                    privateKey: SecureEnclave.P256.KeyAgreement.PrivateKey(
                        dataRepresentation: Data(key.reference)))
            }
            var item = query(String(decoding: key.reference, as: UTF8.self))
            item[kSecReturnData as String] = true
            var found: CFTypeRef?
            let status = SecItemCopyMatching(item as CFDictionary, &found)
            guard status == errSecSuccess, let raw = found as? Data else {
                throw NSError(domain: NSOSStatusErrorDomain, code: Int(status))
            }
            return try DeviceKey(
                keyID: key.keyID, privateKey: P256.KeyAgreement.PrivateKey(rawRepresentation: raw))
        }

        /// The Secure Enclave keeps no list: without its representation such a key is gone.
        static func delete(_ key: KeptDeviceKeys.Key) {
            guard key.reference.starts(with: tagPrefix.utf8) else { return }
            SecItemDelete(query(String(decoding: key.reference, as: UTF8.self)) as CFDictionary)
        }

        private static func query(_ tag: String) -> [String: Any] {
            [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "push",
                kSecAttrAccount as String: tag, kSecAttrAccessGroup as String: PushRecords.group,
                kSecUseDataProtectionKeychain as String: true,
            ]
        }
    }

    /// The members of a sealed content that are shown here; ForApps has all of them.
    struct SealedContent: Decodable {
        let title, body, privacy: String
        let publicTitle, publicBody, deepLink, actionCategory, sound, thread, interruption: String?
        let badge: Int?

        init(_ message: SealedMessage) throws {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            self = try decoder.decode(Self.self, from: Data(message.content))
        }
    }

    /// What is shown for a push. Nothing of what came is in it unless it was verified.
    enum Shown {
        /// The app's own words: true of everything, and they say nothing.
        static func ownText(alerts: Bool = true) -> UNMutableNotificationContent {
            let content = UNMutableNotificationContent()
            content.title = String(localized: "News in the app")
            content.body = String(localized: "Open the app to see it.")
            content.sound = alerts ? .default : nil
            content.interruptionLevel = alerts ? .active : .passive
            return content
        }

        /// - Parameters:
        ///   - came: Sound and urgency of an open push are taken from here. They are not signed, and tell nothing.
        ///   - isCriticalAllowed: Whether the person lets this app's critical alerts through, which only an app with Apple's
        ///     entitlement can ask for.
        ///   - unread: The number for the icon after this push, asked for where the push is new and counts; `nil` leaves
        ///     the icon as it is.
        static func content(
            of push: VerifiedPush, as came: UNNotificationContent, isCriticalAllowed: Bool,
            unread: () -> Int?
        ) throws -> UNMutableNotificationContent {
            switch push {
            case .sealed(.opened(let message)):
                return try content(of: message, alerts: true, isCriticalAllowed, unread)
            case .sealed(.alreadyOpened(let message)):
                return try content(of: message, alerts: false, isCriticalAllowed, unread)
            case .open(let push, let isNew):
                let content = ownText(alerts: isNew)
                content.title = push.title
                content.body = push.body
                content.categoryIdentifier = push.actionCategory ?? ""
                guard isNew else { return content }
                // The member says that the push counts; how many there are only the phone knows.
                if push.badge != nil { content.badge = unread().map { NSNumber(value: $0) } }
                content.sound = came.sound
                content.interruptionLevel = came.interruptionLevel
                return content
            }
        }

        private static func content(
            of message: SealedMessage, alerts: Bool, _ isCriticalAllowed: Bool, _ unread: () -> Int?
        ) throws -> UNMutableNotificationContent {
            let sealed = try SealedContent(message)
            let content = ownText(alerts: alerts)
            // An extension cannot tell whether the phone is locked, so the public texts are shown unless the person chose all.
            switch sealed.privacy {
            case "full":
                content.title = sealed.title
                content.body = sealed.body
            case "generic":
                content.title = sealed.publicTitle ?? content.title
                content.body = sealed.publicBody ?? content.body
            default: break
            }
            content.categoryIdentifier = sealed.actionCategory ?? ""
            content.threadIdentifier = sealed.thread ?? ""
            guard alerts else { return content }
            if sealed.badge != nil { content.badge = unread().map { NSNumber(value: $0) } }
            let name = sealed.sound.flatMap { $0 == "default" ? nil : UNNotificationSoundName($0) }
            content.sound = sealed.sound.map { _ in name.map { UNNotificationSound(named: $0) } ?? .default }
            switch sealed.interruption {
            case "passive": content.interruptionLevel = .passive
            case "critical" where isCriticalAllowed:
                // Through the ring switch and Do Not Disturb, at full volume: what the gate allowed stays allowed here.
                content.interruptionLevel = .critical
                content.sound =
                    name.map { .criticalSoundNamed($0, withAudioVolume: 1) }
                    ?? .defaultCriticalSound(withAudioVolume: 1)
            case "time_sensitive", "critical": content.interruptionLevel = .timeSensitive
            default: content.interruptionLevel = .active
            }
            return content
        }

        /// Where a tap leads, from verified content alone.
        static func link(of push: VerifiedPush) throws -> URL? {
            switch push {
            case .sealed(let opening): try SealedContent(opening.message).deepLink.flatMap { URL(string: $0) }
            case .open(let push, _): push.deepLink.flatMap { URL(string: $0) }
            }
        }

        static func now() -> UInt64 { UInt64(Date().timeIntervalSince1970) }
    }

    // MARK: - In the extension

    /// Replaces the text of every push. It has about 24 MB and 30 seconds, and uses no network: everything it needs is in
    /// the container.
    final class NotificationService: UNNotificationServiceExtension {
        private let lock = NSLock()
        private var deliver: ((UNNotificationContent) -> Void)?

        override func didReceive(
            _ request: UNNotificationRequest,
            withContentHandler deliver: @escaping (UNNotificationContent) -> Void
        ) {
            lock.withLock { self.deliver = deliver }
            UNUserNotificationCenter.current().getNotificationSettings { [self] settings in
                let content = content(
                    for: request.content, isCriticalAllowed: settings.criticalAlertSetting == .enabled)
                // The app verifies again what this holds before it follows a link.
                content.userInfo = request.content.userInfo
                finish(with: content)
            }
        }

        /// Delivers the app's own text. What came is not verified yet.
        override func serviceExtensionTimeWillExpire() { finish(with: Shown.ownText()) }

        private func content(
            for came: UNNotificationContent, isCriticalAllowed: Bool
        ) -> UNMutableNotificationContent {
            do {
                let records = try PushRecords()
                do {
                    let push = try records.opener().verify(apns: came.userInfo, now: Shown.now())
                    return try Shown.content(of: push, as: came, isCriticalAllowed: isCriticalAllowed) {
                        try? records.countUnread { $0 + 1 }
                    }
                } catch let error as SealedPushError {
                    try records.wish(for: error.advice)
                    // Without the entitlement `com.apple.developer.usernotifications.filtering` an extension cannot show
                    // nothing: an emptied content is shown as it came.
                    return Shown.ownText(alerts: error.advice != .showNothing)
                }
            } catch {
                return Shown.ownText()
            }
        }

        /// Once, whichever of the two comes first.
        private func finish(with content: UNNotificationContent) {
            let deliver = lock.withLock {
                defer { self.deliver = nil }
                return self.deliver
            }
            deliver?(content)
        }
    }

    // MARK: - In the app

    /// The app's own server, signed in as always. Behind it is the gateway, which an app never calls itself.
    protocol PushServer: Sendable {
        /// `PUT …/devices/{device}`
        func register(_ report: DeviceReport, device: String) async throws
        /// `may_prompt` of this device in `GET …/preferences`
        func mayPrompt(device: String) async throws -> Bool
        /// `POST …/permission-prompts`
        func promptWasShown(device: String, answer: DeviceReport.Permission) async throws
        /// `POST …/keys`
        func register(publicKey: [UInt8], suiteName: String, device: String) async throws -> PushChallenge
        /// `POST …/keys/{key_id}/confirm`
        func confirm(keyID: String, device: String, proof: String, oldKeyProof: String?) async throws
        /// The key that was confirmed last, by the server's own record.
        func confirmedKeyID(device: String) async throws -> String?
        /// `GET /v1/keyset`
        func keyset() async throws -> [UInt8]
    }

    /// The members of a device that only the phone knows.
    struct DeviceReport: Sendable {
        enum Permission: String, Sendable {
            case granted, provisional, denied
            case notDetermined = "not_determined"
        }

        /// As hexadecimal digits.
        var token: String
        /// An IANA name: quiet hours follow the phone when it travels.
        var timeZone: String
        var permission: Permission
        /// Whether the person lets critical alerts of this app through.
        var criticalAlerts: Bool
    }

    /// The answer to a registration. The envelopes are texts with the members in their one order.
    struct PushChallenge: Sendable {
        let keyID, challenge: String
        let oldKeyChallenge: String?
    }

    /// Registers keys and tokens.
    actor PushRegistration {
        private let server: any PushServer
        private let records: PushRecords
        private let device: String
        private var isRotating = false
        private var token: String?

        /// - Parameter device: The id that this installation was registered under at sign-in. Another than before begins anew.
        init(server: any PushServer, device: String) throws {
            self.server = server
            self.device = device
            records = try PushRecords()
            let stored = try records.state()
            if stored?.device != device {
                try records.store(PushRecords.State(device: device))
                stored?.keys.all.forEach(PushKey.delete)
            }
        }

        private var state: PushRecords.State {
            get throws { try records.state() ?? PushRecords.State(device: device) }
        }

        /// At every start of the app.
        func start() async throws {
            var state = try state
            let dropped = state.keys.dropExpired(now: Shown.now())
            try records.store(state)
            dropped.forEach(PushKey.delete)

            try await fetchKeyset()
            try await settlePending()
            // Only the server's word starts a registration. A push that named an unknown key is a reason to ask, no more.
            let isWished = try records.takeWish("wish-registration")
            let active = try self.state.keys.active
            if active == nil { return try await rotate() }
            if isWished, try await server.confirmedKeyID(device: device) != active?.keyID {
                try await rotate()
            }
        }

        private func fetchKeyset() async throws {
            _ = try records.takeWish("wish-keyset")
            let note = try await server.keyset()
            do {
                try records.store(PushRecords.trusted(note, after: records.keyset()))
            } catch SealedPushError.staleKeyset {
                // The server has none that is newer.
            }
        }

        /// Makes a new key and puts it in the place of the active one.
        func rotate() async throws {
            guard !isRotating else { return }
            isRotating = true
            defer { isRotating = false }
            let (reference, publicKey) = try PushKey.make()
            let suiteName = "P256_SHA256_AES256GCM"
            let answer = try await server.register(publicKey: publicKey, suiteName: suiteName, device: device)
            var state = try state
            state.pending = try KeptDeviceKeys.Key(
                keyID: answer.keyID, suiteName: suiteName, reference: reference)
            try records.store(state)
            let (opener, now) = (try records.opener(), Shown.now())
            let proof = try opener.proof(forChallenge: answer.challenge, now: now)
            // Only the holder of the active key may replace it.
            let oldProof = try answer.oldKeyChallenge.map { try opener.proof(forChallenge: $0, now: now) }
            try await server.confirm(
                keyID: answer.keyID, device: device, proof: proof, oldKeyProof: oldProof)
            try promote()
        }

        /// The app ended between a confirmation and what it stores after it.
        private func settlePending() async throws {
            guard let pending = try state.pending else { return }
            if try await server.confirmedKeyID(device: device) == pending.keyID { return try promote() }
            var state = try state
            state.pending = nil
            try records.store(state)
            PushKey.delete(pending)
        }

        private func promote() throws {
            var state = try state
            guard let pending = state.pending else { return }
            let dropped = try state.keys.rotate(to: pending, now: Shown.now())
            state.pending = nil
            try records.store(state)
            dropped.forEach(PushKey.delete)
        }

        /// Lets notifications arrive quietly from the first start on. It asks the person nothing, so it uses up no prompt.
        func allowQuietly() async throws {
            let center = UNUserNotificationCenter.current()
            guard await center.notificationSettings().authorizationStatus == .notDetermined else { return }
            _ = try await center.requestAuthorization(options: [.provisional, .alert, .sound, .badge])
            try await report()
        }

        /// Shows the system's prompt, once in the life of a device: the gateway remembers that it was shown, also where the
        /// app was deleted since. Call it at a moment at which a notification would be of use.
        ///
        /// - Returns: Whether it was shown. If not, lead the person to the system's settings.
        func askForPermission() async throws -> Bool {
            guard try await server.mayPrompt(device: device) else { return false }
            // Leave `.criticalAlert` out without the entitlement `com.apple.developer.usernotifications.critical-alerts`.
            let isGranted = try await UNUserNotificationCenter.current().requestAuthorization(
                options: [.alert, .sound, .badge, .criticalAlert])
            try await server.promptWasShown(device: device, answer: isGranted ? .granted : .denied)
            try await report()
            return true
        }

        func register(token: Data) async throws {
            self.token = token.map { String(format: "%02x", $0) }.joined()
            try await report()
        }

        /// At every return to the foreground: the person may have changed the permission in the settings, or the zone by
        /// travelling, while the app was not running.
        func report() async throws {
            guard let token else { return }
            let settings = await UNUserNotificationCenter.current().notificationSettings()
            let permission: DeviceReport.Permission =
                switch settings.authorizationStatus {
                case .authorized, .ephemeral: .granted
                case .provisional: .provisional
                case .notDetermined: .notDetermined
                default: .denied
                }
            try await server.register(
                DeviceReport(
                    token: token, timeZone: TimeZone.current.identifier, permission: permission,
                    criticalAlerts: settings.criticalAlertSetting == .enabled),
                device: device)
        }
    }

    /// The buttons below a notification, by the category that a message names. The list in ForApps has every category.
    enum PushCategories {
        static var all: Set<UNNotificationCategory> {
            let open = UNNotificationAction(
                identifier: "open", title: String(localized: "Open"), options: [.foreground])
            // Either answer is given in the app, to a person who has unlocked the phone.
            let answers = [
                UNNotificationAction(
                    identifier: "was_me", title: String(localized: "It was me"),
                    options: [.foreground, .authenticationRequired]),
                UNNotificationAction(
                    identifier: "was_not_me", title: String(localized: "It was not me"),
                    options: [.foreground, .authenticationRequired, .destructive]),
            ]
            let actions = [
                "TRANSACTION_ALERT": [open], "FRAUD_ALERT": answers, "SECURITY_ALERT": answers, "CODE": [],
                "INTERVENTION": [open],
            ]
            return Set(
                actions.map { name, actions in
                    UNNotificationCategory(
                        identifier: name, actions: actions, intentIdentifiers: [],
                        hiddenPreviewsBodyPlaceholder: String(localized: "Open the app to see it."),
                        options: [.customDismissAction])
                })
        }
    }

    /// The parts of the app's delegate that have to do with pushes. Its own `didFinishLaunching` makes the registration,
    /// becomes the delegate of `UNUserNotificationCenter`, and calls ``start()``; each return to the foreground calls
    /// ``becameActive()``.
    final class PushDelegate: NSObject, UNUserNotificationCenterDelegate, Sendable {
        private let registration: PushRegistration
        private let open: @MainActor @Sendable (URL) -> Void

        /// - Parameter open: Follows a link within the app.
        init(registration: PushRegistration, open: @escaping @MainActor @Sendable (URL) -> Void) {
            self.registration = registration
            self.open = open
        }

        @MainActor func start() {
            UNUserNotificationCenter.current().delegate = self
            UNUserNotificationCenter.current().setNotificationCategories(PushCategories.all)
            UIApplication.shared.registerForRemoteNotifications()
            // What fails here is tried at the next start.
            Task {
                try await registration.allowQuietly()
                try await registration.start()
            }
        }

        /// From `applicationDidBecomeActive(_:)`, or `sceneDidBecomeActive(_:)` in an app with scenes. The app shows what is
        /// new itself, so the number goes from its icon; report it as `badge_cleared`.
        func becameActive() {
            Task {
                try PushRecords().countUnread { _ in 0 }
                try await UNUserNotificationCenter.current().setBadgeCount(0)
                try await registration.report()
            }
        }

        /// From `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`.
        func register(token: Data) {
            Task { try await registration.register(token: token) }
        }

        /// The app is in front. What cannot be verified is not shown in it.
        func userNotificationCenter(
            _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
            withCompletionHandler present: @escaping (UNNotificationPresentationOptions) -> Void
        ) {
            present(verified(notification) == nil ? [] : [.banner, .list, .sound, .badge])
        }

        /// A tap. The link is taken from what is verified here, not from what the notification shows or carries.
        func userNotificationCenter(
            _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
            withCompletionHandler finish: @escaping () -> Void
        ) {
            defer { finish() }
            guard response.actionIdentifier == UNNotificationDefaultActionIdentifier,
                let push = verified(response.notification)
            else { return }
            do {
                guard let url = try Shown.link(of: push) else { return }
                Task { [open] in await open(url) }
            } catch {
                // A content without its members; the app opens where it was.
            }
        }

        private func verified(_ notification: UNNotification) -> VerifiedPush? {
            do {
                return try PushRecords().opener().verify(
                    apns: notification.request.content.userInfo, now: Shown.now())
            } catch { return nil }
        }
    }
#endif
