import ArgumentParser
import CanonicalJSON
import CommandTerminal
import Foundation

/// The members of a send, as flags. What they mean the OpenAPI document says; `sendgate` only spells them.
struct SendOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The notification type.", valueName: "type")) var type: String?
    @Option(help: ArgumentHelp("Whom to notify.", valueName: "id")) var user: String?
    @Option(help: ArgumentHelp("One device instead of all.", valueName: "id")) var device: String?
    @Option(help: ArgumentHelp("One phone number or e-mail address.", valueName: "id")) var address: String?
    @Option(help: ArgumentHelp("The type's params, as a JSON object.", valueName: "json")) var params: String?
    @Option(help: ArgumentHelp("One param that is a text. Repeatable.", valueName: "name=text"))
    var param: [String] = []
    @Option(help: ArgumentHelp("push, sms or email.", valueName: "channel")) var channel: String?
    @Flag(help: "Ask for OS critical-alert delivery.") var critical = false
    @Option(help: ArgumentHelp("How long it is of use, in seconds.", valueName: "seconds"))
    var ttl: Int64?
    @Option(help: ArgumentHelp("Sends of one key replace each other.", valueName: "key")) var collapseKey:
        String?
    @Option(help: ArgumentHelp("Where a tap leads.", valueName: "url")) var deepLink: String?
    @Option(help: ArgumentHelp("The language of the text.", valueName: "tag")) var locale: String?
    @Option(help: ArgumentHelp("The send this one replaces.", valueName: "send-id")) var fallbackFor: String?
    @Option(help: ArgumentHelp("The whole body instead of flags; - is standard input.", valueName: "file"))
    var file: String?

    /// Bytes of a request the gateway takes.
    static let bodyByteCountMax = 64 * 1024

    /// - Parameter more: Members the command adds.
    func object(adding more: JSONObject = [:], takesFile: Bool = true) throws -> JSONObject {
        if let file {
            var object = try CommandInput.object(of: file, byteCountMax: Self.bodyByteCountMax)
            for (key, value) in more { object[key] = value }
            return object
        }
        guard let type else {
            throw CommandFailure.usage(
                "no notification type is named", hint: "give --type, or the body with --file")
        }
        var object: JSONObject = ["type": .string(type)]
        if let user {
            var recipient: JSONObject = ["user": .string(user)]
            if let device { recipient["device"] = .string(device) }
            if let address { recipient["address"] = .string(address) }
            object["recipient"] = .object(recipient)
        } else if device != nil || address != nil {
            throw CommandFailure.usage("a device or address without a user", hint: "give --user")
        }
        let params = try paramsObject()
        if !params.isEmpty { object["params"] = .object(params) }
        if let channel { object["channel"] = .string(channel) }
        if critical { object["critical"] = true }
        if let ttl { object["ttl_seconds"] = .integer(ttl) }
        if let collapseKey { object["collapse_key"] = .string(collapseKey) }
        if let deepLink { object["deep_link"] = .string(deepLink) }
        if let locale { object["locale"] = .string(locale) }
        if let fallbackFor { object["fallback_for"] = .string(fallbackFor) }
        for (key, value) in more { object[key] = value }
        return object
    }

    private func paramsObject() throws -> JSONObject {
        var object: JSONObject = [:]
        if let params {
            object = try CommandInput.object(from: Array(params.utf8), named: "--params")
        }
        for text in param {
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw CommandFailure.usage("`--param \(text)` has no name", hint: "write --param name=text")
            }
            object[String(text[..<equals])] = .string(String(text[text.index(after: equals)...]))
        }
        return object
    }
}

/// Files and standard input that a command reads whole.
enum CommandInput {
    /// - Parameter path: `-` for standard input.
    static func bytes(of path: String, byteCountMax: Int) throws -> [UInt8] {
        let descriptor = path == "-" ? dup(Console.current.inputDescriptor) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(
                "cannot read `\(path)`: \(String(cString: strerror(errno)))", hint: "check the path")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw CommandFailure("cannot read `\(path)`: \(String(cString: strerror(errno)))")
            }
            if count == 0 { return bytes }
            bytes += piece[..<count]
            guard bytes.count <= byteCountMax else {
                throw CommandFailure("`\(path)` has more than \(byteCountMax) bytes")
            }
        }
    }

    static func object(of path: String, byteCountMax: Int) throws -> JSONObject {
        try object(
            from: bytes(of: path, byteCountMax: byteCountMax), named: path == "-" ? "standard input" : path)
    }

    static func object(from bytes: [UInt8], named name: String) throws -> JSONObject {
        do throws(JSONError) {
            if case .object(let object) = try CanonicalJSON.read(bytes, limits: .document) { return object }
        } catch {
            throw CommandFailure(
                "`\(name)` is not JSON as the gateway reads it: \(error.message)", status: .usage)
        }
        throw CommandFailure.usage("`\(name)` is no JSON object")
    }
}
