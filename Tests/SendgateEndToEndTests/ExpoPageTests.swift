import Foundation
import Testing

extension EndToEnd {
    /// The programs of the page for Expo apps, beyond what its commands run.
    @Suite struct ExpoPageTests {
        @Test func `the phone under Node opens the vectors, or refuses them for the reasons they state`()
            throws
        {
            let scratch = try Scratch()
            let phone = try scratch.write("phone.mjs", HandbookPage("Expo").program("phone.mjs"))
            let checked = try Finished.run(
                [
                    "node", Machine.peer("check_phone.mjs"), phone,
                    "\(Machine.repository)/Tests/Fixtures/Vectors/sealed-p256.json",
                ], environment: Machine.commands, in: scratch, within: 60)
            #expect(checked.ending == .exit(0), "\(checked.errors)")
            #expect(checked.output == "40\n")
        }

        /// What two prebuilds made of an app that has the plugin.
        private struct Prebuilt: Decodable {
            struct Named: Decodable {
                let attributes: [String: String]
                private enum CodingKeys: String, CodingKey { case attributes = "$" }
            }
            struct Filter: Decodable { let action: [Named] }
            struct Service: Decodable {
                let attributes: [String: String]
                let filters: [Filter]
                private enum CodingKeys: String, CodingKey {
                    case attributes = "$"
                    case filters = "intent-filter"
                }
            }
            struct Target: Decodable {
                let type, bundle: String
                let phases: [String: [String]]
            }
            struct Extension: Decodable {
                let targetName, bundleIdentifier: String
                let entitlements: [String: [String]]
            }
            let manifest: [Service]
            let gradle, podfile, java, kotlin: String
            let targets: [String: Target]
            let groups: [String: [String]]
            let settings: [String: String]
            let `extension`: [String]
            let eas: [Extension]
        }

        private func prebuild(_ options: String, rival: String? = nil) throws -> Finished {
            let scratch = try Scratch()
            let plugin = try scratch.write("withSendgate.js", HandbookPage("Expo").program("withSendgate.js"))
            try FileManager.default.createDirectory(
                atPath: scratch.path("app"), withIntermediateDirectories: false)
            return try Finished.run(
                ["node", Machine.peer("check_expo_plugin.mjs"), plugin, scratch.path("app"), options]
                    + (rival.map { [$0] } ?? []),
                environment: Machine.commands, in: scratch, within: 60)
        }

        @Test func `two prebuilds make one extension, one service and one line of each kind`() throws {
            let finished = try prebuild(#"{"group":"group.no.getdrop.app"}"#)
            try #require(finished.ending == .exit(0), "\(finished.errors)")
            let made = try JSONDecoder().decode(Prebuilt.self, from: Data(finished.output.utf8))

            #expect(made.manifest.count == 1)
            let service = try #require(made.manifest.first)
            #expect(service.attributes["android:name"] == "no.getdrop.app.sendgate.SendgateMessagingService")
            #expect(service.attributes["android:exported"] == "false")
            #expect(
                service.filters.flatMap(\.action).map { $0.attributes["android:name"] }
                    == ["com.google.firebase.MESSAGING_EVENT"])
            let line = "implementation project(':expo-notifications')"
            #expect(made.gradle.components(separatedBy: line).count == 2)
            #expect(made.java.hasPrefix("package no.getdrop.app.sendgate;\n\nfinal class Sealed"))
            #expect(
                made.kotlin.hasPrefix("package no.getdrop.app.sendgate\n\nclass SendgateMessagingService"))

            #expect(made.targets.keys.sorted() == ["SendgatePush"])
            let target = try #require(made.targets["SendgatePush"])
            #expect(target.type == "app_extension" && target.bundle == "no.getdrop.app.push")
            #expect(
                target.phases["Sources"]?.dropFirst() == ["NotificationService.swift", "PushRecords.swift"])
            #expect(target.phases["Resources"]?.dropFirst() == ["keyset"])
            #expect(target.phases["Frameworks"]?.count == 1)
            #expect(made.groups["main"] == ["Drop", "SendgatePush"])
            // As IOSExtension demands; Apple refuses an extension of another version than its app's.
            #expect(made.settings["IPHONEOS_DEPLOYMENT_TARGET"] == "17.0")
            #expect(made.settings["MARKETING_VERSION"] == "2.1.0")
            #expect(made.settings["CURRENT_PROJECT_VERSION"] == "7")
            #expect(
                made.settings["CODE_SIGN_ENTITLEMENTS"] == "SendgatePush/SendgatePush.entitlements")
            #expect(
                made.extension == [
                    "Info.plist", "NotificationService.swift", "PushRecords.swift",
                    "SendgatePush.entitlements",
                    "keyset",
                ])
            #expect(made.podfile.components(separatedBy: "target 'SendgatePush'").count == 2)
            #expect(made.podfile.contains("pod 'SealedPush', :path => '../sendgate/pods'"))
            #expect(made.eas.map(\.bundleIdentifier) == ["no.getdrop.app.push"])
            #expect(
                made.eas.first?.entitlements
                    == ["com.apple.security.application-groups": ["group.no.getdrop.app"]])
        }

        @Test func `what keeps the plugin from working ends the prebuild with what to do`() throws {
            let withoutGroup = try prebuild("{}")
            #expect(withoutGroup.ending != .exit(0))
            #expect(withoutGroup.errors.contains("`group` is an app group"), "\(withoutGroup.errors)")
            // A manifest with two services for messages gives them to one of the two.
            let rival = try prebuild(#"{"group":"group.a"}"#, rival: "com.other.Service")
            #expect(rival.ending != .exit(0))
            #expect(rival.errors.contains("com.other.Service takes messages, too"), "\(rival.errors)")
        }
    }
}
