import Testing
import UnixSockets

@Suite struct InheritedSocketsTests {
    private func sockets(_ environment: [String: String]) throws -> [InheritedSockets.Socket] {
        try InheritedSockets(environment: environment, processID: 42).sockets
    }

    @Test func `descriptors start at 3 and take their names in order`() throws {
        let inherited = try InheritedSockets(
            environment: ["LISTEN_PID": "42", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "gate:fraud:gate"],
            processID: 42)
        #expect(inherited.sockets.map(\.descriptor) == [3, 4, 5])
        #expect(inherited.descriptors(named: "gate") == [3, 5])
        #expect(inherited.descriptors(named: "other") == [])
    }

    @Test func `without names every socket is called unknown`() throws {
        #expect(
            try sockets(["LISTEN_PID": "42", "LISTEN_FDS": "2"])
                == [.init(name: "unknown", descriptor: 3), .init(name: "unknown", descriptor: 4)])
    }

    @Test func `variables meant for another process are nobody's`() throws {
        #expect(try sockets([:]) == [])
        #expect(try sockets(["LISTEN_FDS": "1"]) == [])
        #expect(try sockets(["LISTEN_PID": "41", "LISTEN_FDS": "garbage"]) == [])
        #expect(try sockets(["LISTEN_PID": "42", "LISTEN_FDS": "0", "LISTEN_FDNAMES": ""]) == [])
    }

    @Test(arguments: [
        ["LISTEN_PID": "x", "LISTEN_FDS": "1"], ["LISTEN_PID": "", "LISTEN_FDS": "1"],
        ["LISTEN_PID": "42", "LISTEN_FDS": "-1"], ["LISTEN_PID": "42", "LISTEN_FDS": "01"],
        ["LISTEN_PID": "42", "LISTEN_FDS": "65"], ["LISTEN_PID": "42", "LISTEN_FDS": "1 "],
        ["LISTEN_PID": "42", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "one"],
        ["LISTEN_PID": "42", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "one:two"],
        ["LISTEN_PID": "42", "LISTEN_FDS": "99999999999999999999"],
    ])
    func `variables that make no sense are an error, not no sockets`(environment: [String: String]) {
        #expect(throws: EndpointError.self) { try sockets(environment) }
    }
}
