/// Unicode's compatibility forms (UAX 15, NFKC) of ASCII letters, digits and separators, and of IDNA's full stop: what the
/// standard library has no normalisation for. A test holds the table against another implementation of NFKC.
enum CompatibilityForms {
    static subscript(_ scalar: Unicode.Scalar) -> [Unicode.Scalar]? { forms[scalar] }

    private static let forms: [Unicode.Scalar: [Unicode.Scalar]] = {
        var forms: [Unicode.Scalar: [Unicode.Scalar]] = [:]
        for entry in table.split(whereSeparator: \.isWhitespace) {
            let parts = entry.split(separator: "=", maxSplits: 1)
            let bounds = parts[0].split(separator: "-").compactMap { UInt32($0, radix: 16) }
            let text = Array(parts[1].unicodeScalars)
            for value in bounds[0]...bounds[bounds.count - 1] {
                guard let scalar = Unicode.Scalar(value) else { continue }
                let isFirst = value == bounds[0]
                forms[scalar] =
                    isFirst ? text : [Unicode.Scalar(text[0].value + value - bounds[0]) ?? text[0]]
            }
        }
        return forms
    }()

    /// A code point, or a run of them whose forms follow one another, and what the first is a form of.
    private static let table = """
        AA=a B2-B3=2 B9=1 BA=o BC=1⁄4 BD=1⁄2 BE=3⁄4 132=IJ 133=ij 13F=L· 140=l· 149=ʼn 17F=s 1C4=DŽ
        1C5=Dž 1C6=dž 1C7=LJ 1C8=Lj 1C9=lj 1CA=NJ 1CB=Nj 1CC=nj 1F1=DZ 1F2=Dz 1F3=dz 2B0=h 2B2=j 2B3=r
        2B7=w 2B8=y 2E1=l 2E2=s 2E3=x 37E=; 1D2C=A 1D2E=B 1D30-1D31=D 1D33-1D3A=G 1D3C=O 1D3E=P 1D3F=R
        1D40-1D41=T 1D42=W 1D43=a 1D47=b 1D48-1D49=d 1D4D=g 1D4F=k 1D50=m 1D52=o 1D56=p 1D57-1D58=t
        1D5B=v 1D62=i 1D63=r 1D64-1D65=u 1D9C=c 1DA0=f 1DBB=z 1E9A=aʾ 1FEF=` 2024=. 2025=.. 2026=...
        2047=?? 2048=?! 2049=!? 2070=0 2071=i 2074-2079=4 207A=+ 207C== 207D-207E=( 207F=n 2080-2089=0
        208A=+ 208C== 208D-208E=( 2090=a 2091=e 2092=o 2093=x 2095=h 2096-2099=k 209A=p 209B-209C=s
        20A8=Rs 2100=a/c 2101=a/s 2102=C 2103=°C 2105=c/o 2106=c/u 2109=°F 210A=g 210B=H 210C=H 210D=H
        210E=h 2110=I 2111=I 2112=L 2113=l 2115=N 2116=No 2119-211B=P 211C=R 211D=R 2120=SM 2121=TEL
        2122=TM 2124=Z 2128=Z 212A=K 212C-212D=B 212F=e 2130-2131=E 2133=M 2134=o 2139=i 213B=FAX 2145=D
        2146-2147=d 2148-2149=i 2150=1⁄7 2151=1⁄9 2152=1⁄10 2153=1⁄3 2154=2⁄3 2155=1⁄5 2156=2⁄5 2157=3⁄5
        2158=4⁄5 2159=1⁄6 215A=5⁄6 215B=1⁄8 215C=3⁄8 215D=5⁄8 215E=7⁄8 215F=1⁄ 2160=I 2161=II 2162=III
        2163=IV 2164=V 2165=VI 2166=VII 2167=VIII 2168=IX 2169=X 216A=XI 216B=XII 216C=L 216D-216E=C
        216F=M 2170=i 2171=ii 2172=iii 2173=iv 2174=v 2175=vi 2176=vii 2177=viii 2178=ix 2179=x 217A=xi
        217B=xii 217C=l 217D-217E=c 217F=m 2189=0⁄3 2460-2468=1 2469=10 246A=11 246B=12 246C=13 246D=14
        246E=15 246F=16 2470=17 2471=18 2472=19 2473=20 2474=(1) 2475=(2) 2476=(3) 2477=(4) 2478=(5)
        2479=(6) 247A=(7) 247B=(8) 247C=(9) 247D=(10) 247E=(11) 247F=(12) 2480=(13) 2481=(14) 2482=(15)
        2483=(16) 2484=(17) 2485=(18) 2486=(19) 2487=(20) 2488=1. 2489=2. 248A=3. 248B=4. 248C=5.
        248D=6. 248E=7. 248F=8. 2490=9. 2491=10. 2492=11. 2493=12. 2494=13. 2495=14. 2496=15. 2497=16.
        2498=17. 2499=18. 249A=19. 249B=20. 249C=(a) 249D=(b) 249E=(c) 249F=(d) 24A0=(e) 24A1=(f)
        24A2=(g) 24A3=(h) 24A4=(i) 24A5=(j) 24A6=(k) 24A7=(l) 24A8=(m) 24A9=(n) 24AA=(o) 24AB=(p)
        24AC=(q) 24AD=(r) 24AE=(s) 24AF=(t) 24B0=(u) 24B1=(v) 24B2=(w) 24B3=(x) 24B4=(y) 24B5=(z)
        24B6-24CF=A 24D0-24E9=a 24EA=0 2A74=::= 2A75=== 2A76==== 2C7C=j 2C7D=V 3250=PTE 3251=21 3252=22
        3253=23 3254=24 3255=25 3256=26 3257=27 3258=28 3259=29 325A=30 325B=31 325C=32 325D=33 325E=34
        325F=35 32B1=36 32B2=37 32B3=38 32B4=39 32B5=40 32B6=41 32B7=42 32B8=43 32B9=44 32BA=45 32BB=46
        32BC=47 32BD=48 32BE=49 32BF=50 32C0=1月 32C1=2月 32C2=3月 32C3=4月 32C4=5月 32C5=6月 32C6=7月 32C7=8月
        32C8=9月 32C9=10月 32CA=11月 32CB=12月 32CC=Hg 32CD=erg 32CE=eV 32CF=LTD 3358=0点 3359=1点 335A=2点
        335B=3点 335C=4点 335D=5点 335E=6点 335F=7点 3360=8点 3361=9点 3362=10点 3363=11点 3364=12点 3365=13点
        3366=14点 3367=15点 3368=16点 3369=17点 336A=18点 336B=19点 336C=20点 336D=21点 336E=22点 336F=23点
        3370=24点 3371=hPa 3372=da 3373=AU 3374=bar 3375=oV 3376=pc 3377=dm 3378=dm2 3379=dm3 337A=IU
        3380=pA 3381=nA 3382=μA 3383=mA 3384=kA 3385=KB 3386=MB 3387=GB 3388=cal 3389=kcal 338A=pF
        338B=nF 338C=μF 338D=μg 338E=mg 338F=kg 3390=Hz 3391=kHz 3392=MHz 3393=GHz 3394=THz 3395=μl
        3396=ml 3397=dl 3398=kl 3399=fm 339A=nm 339B=μm 339C=mm 339D=cm 339E=km 339F=mm2 33A0=cm2
        33A1=m2 33A2=km2 33A3=mm3 33A4=cm3 33A5=m3 33A6=km3 33A7=m∕s 33A8=m∕s2 33A9=Pa 33AA=kPa 33AB=MPa
        33AC=GPa 33AD=rad 33AE=rad∕s 33AF=rad∕s2 33B0=ps 33B1=ns 33B2=μs 33B3=ms 33B4=pV 33B5=nV 33B6=μV
        33B7=mV 33B8=kV 33B9=MV 33BA=pW 33BB=nW 33BC=μW 33BD=mW 33BE=kW 33BF=MW 33C0=kΩ 33C1=MΩ
        33C2=a.m. 33C3=Bq 33C4=cc 33C5=cd 33C6=C∕kg 33C7=Co. 33C8=dB 33C9=Gy 33CA=ha 33CB=HP 33CC=in
        33CD=KK 33CE=KM 33CF=kt 33D0=lm 33D1=ln 33D2=log 33D3=lx 33D4=mb 33D5=mil 33D6=mol 33D7=PH
        33D8=p.m. 33D9=PPM 33DA=PR 33DB=sr 33DC=Sv 33DD=Wb 33DE=V∕m 33DF=A∕m 33E0=1日 33E1=2日 33E2=3日
        33E3=4日 33E4=5日 33E5=6日 33E6=7日 33E7=8日 33E8=9日 33E9=10日 33EA=11日 33EB=12日 33EC=13日 33ED=14日
        33EE=15日 33EF=16日 33F0=17日 33F1=18日 33F2=19日 33F3=20日 33F4=21日 33F5=22日 33F6=23日 33F7=24日
        33F8=25日 33F9=26日 33FA=27日 33FB=28日 33FC=29日 33FD=30日 33FE=31日 33FF=gal A7F2=C A7F3=F A7F4=Q
        FB00=ff FB01=fi FB02=fl FB03=ffi FB04=ffl FB05=st FB06=st FB29=+ FE10=, FE12=。 FE13-FE14=:
        FE15=! FE16=? FE19=... FE30=.. FE33=_ FE34=_ FE35-FE36=( FE37={ FE38=} FE47=[ FE48=] FE4D=_
        FE4E=_ FE4F=_ FE50=, FE52=. FE54=; FE55=: FE56=? FE57=! FE59-FE5A=( FE5B={ FE5C=} FE5F=# FE60=&
        FE61-FE62=* FE63=- FE64=< FE65=> FE66== FE68=\\ FE69-FE6A=$ FE6B=@ FF01-FF5E=! FF61=。 107A5=q
        1CCD6-1CCEF=A 1CCF0-1CCF9=0 1D400-1D419=A 1D41A-1D433=a 1D434-1D44D=A 1D44E-1D454=a
        1D456-1D467=i 1D468-1D481=A 1D482-1D49B=a 1D49C=A 1D49E-1D49F=C 1D4A2=G 1D4A5-1D4A6=J
        1D4A9-1D4AC=N 1D4AE-1D4B5=S 1D4B6-1D4B9=a 1D4BB=f 1D4BD-1D4C3=h 1D4C5-1D4CF=p 1D4D0-1D4E9=A
        1D4EA-1D503=a 1D504-1D505=A 1D507-1D50A=D 1D50D-1D514=J 1D516-1D51C=S 1D51E-1D537=a
        1D538-1D539=A 1D53B-1D53E=D 1D540-1D544=I 1D546=O 1D54A-1D550=S 1D552-1D56B=a 1D56C-1D585=A
        1D586-1D59F=a 1D5A0-1D5B9=A 1D5BA-1D5D3=a 1D5D4-1D5ED=A 1D5EE-1D607=a 1D608-1D621=A
        1D622-1D63B=a 1D63C-1D655=A 1D656-1D66F=a 1D670-1D689=A 1D68A-1D6A3=a 1D7CE-1D7D7=0
        1D7D8-1D7E1=0 1D7E2-1D7EB=0 1D7EC-1D7F5=0 1D7F6-1D7FF=0 1F100=0. 1F101=0, 1F102=1, 1F103=2,
        1F104=3, 1F105=4, 1F106=5, 1F107=6, 1F108=7, 1F109=8, 1F10A=9, 1F110=(A) 1F111=(B) 1F112=(C)
        1F113=(D) 1F114=(E) 1F115=(F) 1F116=(G) 1F117=(H) 1F118=(I) 1F119=(J) 1F11A=(K) 1F11B=(L)
        1F11C=(M) 1F11D=(N) 1F11E=(O) 1F11F=(P) 1F120=(Q) 1F121=(R) 1F122=(S) 1F123=(T) 1F124=(U)
        1F125=(V) 1F126=(W) 1F127=(X) 1F128=(Y) 1F129=(Z) 1F12A=〔S〕 1F12B=C 1F12C=R 1F12D=CD 1F12E=WZ
        1F130-1F149=A 1F14A=HV 1F14B=MV 1F14C=SD 1F14D=SS 1F14E=PPV 1F14F=WC 1F16A=MC 1F16B=MD 1F16C=MR
        1F190=DJ 1FBF0-1FBF9=0
        """
}
