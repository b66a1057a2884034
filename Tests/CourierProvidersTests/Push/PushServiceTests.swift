import Foundation
import Testing

/// The stand-in itself, held right by the clients that others use: it takes what they send, and they understand what it answers.
@Suite(.timeLimit(.minutes(1))) struct PushServiceTests {
    private func said(by client: String, of service: PushService) throws -> String {
        let folder = try TestFolder()
        let keys = try PushKeys.folder.get()
        for name in ["ca.pem", "apns.p8"] {
            try FileManager.default.copyItem(atPath: keys.file(name), toPath: folder.file(name))
        }
        _ = try PushKeys.account(service, in: folder)
        return try PeerProcess("push_clients.py", [client, folder.path, "\(service.port)"]).readLine(
            within: 60)
    }

    @Test func `aioapns sends a push to it`() throws {
        let service = try PushService()
        #expect(try said(by: "apple", of: service) == "200 None; 400 BadDeviceToken")
        #expect(try service.requests().map(\.broken) == [nil, "BadDeviceToken"])
    }

    @Test func `firebase-admin sends a push to it`() throws {
        let service = try PushService()
        #expect(try said(by: "google", of: service) == "projects/courier-test/messages/1")
        #expect(try service.requests().map(\.broken) == [nil, nil])
    }

    @Test func `exponent-server-sdk sends pushes to it and asks for receipts`() throws {
        let service = try PushService()
        #expect(
            try said(by: "expo", of: service)
                == "ok ticket-1; DeviceNotRegistered; ok ticket-2; ticket-1 ok; ticket-2 error")
        #expect(try service.requests().map(\.broken) == [nil, nil])
    }
}
