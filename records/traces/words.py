"""The words that synthetic prompts are made of: our own list, free to use.

Common English words, each a single token to most tokenizers; the order is part
of the prompts, so a change here changes every synthetic prompt.
"""

WORDS = tuple(
    """
    able above across after again age air all along also always among animal answer apple area
    arm art ask back bag ball bank base bear beat bed bell best better big bird black blue board
    boat body bone book born both bottom box branch bread break bridge bright bring brother brown
    build burn busy call calm camp car card care carry case cat cause cell centre chain chair
    chance change chart check child choose circle city class clean clear climb clock close cloth
    cloud coast coat cold collect colour come common cook cool copy corn corner cost count country
    course cover cross crowd cup current cut dance dark day deal dear deep desk detail dog door
    double down draw dream dress drink drive drop dry dust early earth east easy edge egg end
    engine enjoy enter equal evening event example face fact fair fall family far farm fast father
    field fig fill film find fine finger fire first fish fit five flat floor flow flower fly
    follow food foot forest form forward four free fresh friend front fruit full garden gate
    gather general gentle give glad glass go gold good grain grass great green ground group grow
    guess guide half hand happy hard hat head hear heart heat heavy help high hill history hold
    home hope horse hour house idea inch iron island job join jump keep key kind kitchen lake lamp
    land language large last late laugh law lead leaf learn leave left letter level lift light line
    list listen little long look lot loud love low lunch machine main make map mark market master
    matter meal measure meet middle mile milk mind minute moment money month moon morning mother
    mountain mouth move music name narrow nation near neck need never new night nine noise north
    note notice number ocean offer office oil old open orange order other out over page paint pair
    paper part pass past path pattern pay people perfect person picture piece place plain plan
    plant plate play point port power present press price print problem product proof public pull
    push quick quiet race rain raise range reach read ready real reason record red region rest
    result rich ride right ring rise river road rock room root rope round rule run safe salt same
    sand save scale school science sea season seat second seed sense serve set seven shade shape
    share sharp ship shirt shoe shop short show side sign silver simple sister six size skin sky
    sleep slow small smile smooth snow soft soil song sound south space speak special spring square
    stand star start state station stay step still stone story street strong student sugar summer
    sun supply sure surface swim table tail talk tall teach team ten test thank thick thin third
    three time tiny together tone tool top total touch town track trade train travel tree true
    trust turn twenty two type under unit use valley value view village visit voice wait walk wall
    want warm wash watch water wave way wear week west wheel white whole wide wild wind window
    winter wish wood word work world write yard year yellow young
    """.split()
)
